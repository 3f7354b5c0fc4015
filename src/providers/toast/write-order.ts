import { GiveUp } from '../../core/domain/errors.ts';
import type { CanonicalOrder, KitchenOrder } from '../../core/domain/order.ts';
import { minorDigits, toDecimal } from '../../core/domain/money.ts';
import { ageCheck, orderNote, takeOff } from '../order-texts.ts';
import type { Settings } from './payloads.ts';
import { writeCustomer } from './write-customer.ts';
import { SPECIAL_REQUEST_MAX, limitModifiers, specialRequest, writeSelection } from './write-selection.ts';

type Destination = Extract<CanonicalOrder['fulfillment'], { type: 'delivery' }>['destination'];

/**
 * Writes the order in Toast's format, without the payment, as `/prices` takes it.
 * https://doc.toasttab.com/openapi/orders/operation/ordersPost/
 * @throws GiveUp if the order lacks what Toast requires, NeedsOperator if the settings do
 */
export function writeOrder(order: KitchenOrder, settings: Settings, now: Date) {
  const { fulfillment, money, notes } = order;
  const { discount = 0 } = money;
  const { discountGuid } = settings;
  limitModifiers(order.items);
  const asked = discountGuid === undefined ? [takeOff(order), notes].filter(Boolean).join('\n') : notes;
  const note = orderNote({ ...order, notes: asked }, SPECIAL_REQUEST_MAX);
  return {
    diningOption: { guid: settings.diningOptionGuids[fulfillment.type] },
    ...writeSchedule(fulfillment.requestedAt, now),
    ...(fulfillment.type === 'delivery' && {
      deliveryInfo: writeDelivery(fulfillment.destination, ageCheck(order), settings.defaultState),
    }),
    checks: [
      {
        // Up to 255 characters, on the kitchen's screens while the order waits.
        tabName: order.callOutCode ?? order.serviceOrderId,
        customer: writeCustomer(order.member),
        selections: [
          ...order.items.map((item) => writeSelection(item, settings)),
          // Order-level notes: https://doc.toasttab.com/doc/cookbook/apiIntegrationChecklistOrdering.html
          ...(note === undefined ? [] : [specialRequest(note, 1, 'itemGroup', settings)]),
        ],
        ...(settings.feeServiceChargeGuid !== undefined &&
          money.fee > 0 && {
            appliedServiceCharges: [
              {
                serviceCharge: { guid: settings.feeServiceChargeGuid },
                chargeAmount: amountOf(money.fee, money.currency),
              },
            ],
          }),
        // One for all: whether one discount may be applied twice is a setting of the restaurant's.
        ...(discountGuid !== undefined &&
          discount > 0 && {
            appliedDiscounts: [
              { discount: { guid: discountGuid }, discountAmount: amountOf(discount, money.currency) },
            ],
          }),
      },
    ],
  };
}

/**
 * Checks the member, the address and the number of modifiers. A missing state is one that the settings may give.
 * @throws GiveUp if the order lacks what Toast requires
 */
export function checkOrder({ items, member, fulfillment }: CanonicalOrder): void {
  limitModifiers(items);
  writeCustomer(member);
  if (fulfillment.type === 'delivery') writeDelivery(fulfillment.destination, undefined, 'NY');
}

/**
 * The payment of what Toast says is due. Nobody paid what is still to be taken off: it stays open on the check.
 * @param due Toast's total as it came, a decimal
 */
export function writePayment({ fulfillment, money, placedAt }: CanonicalOrder, settings: Settings, due: number) {
  const { alternatePaymentGuid: guid, discountGuid, deliveredBy } = settings;
  const { discount = 0, currency } = money;
  const isTheirs = fulfillment.type === 'pickup' || deliveredBy !== 'platform';
  const dueMinor = Math.round(due * 10 ** minorDigits(currency));
  return {
    type: 'OTHER',
    otherPayment: { guid },
    amount: discountGuid === undefined && discount > 0 ? amountOf(Math.max(0, dueMinor - discount), currency) : due,
    tipAmount: isTheirs ? amountOf(money.tip, currency) : 0,
    paidDate: writeTime(new Date(placedAt)),
  };
}

/** Returns the amount as a double, whose shortest decimal is the amount itself, so nothing is lost in JSON. */
function amountOf(minorUnits: number, currency: string): number {
  return Number(toDecimal(minorUnits, currency));
}

/**
 * The time of the order. Without one the kitchen begins at once. `openedDate` books the order on the right day.
 * https://doc.toasttab.com/doc/devguide/orders_api_future_orders.html
 */
function writeSchedule(requestedAt: string | undefined, now: Date) {
  if (requestedAt === undefined) return {};
  const at = new Date(requestedAt);
  return at > now ? { promisedDate: writeTime(at), openedDate: writeTime(at) } : {};
}

/** Writes a time as Toast's examples do: `2022-03-05T16:00:00.000+0000`. */
function writeTime(time: Date): string {
  return time.toISOString().replace('Z', '+0000');
}

function writeDelivery(destination: Destination, check: string | undefined, defaultState: string | undefined) {
  const { line1, line2, city, postalCode, country, latitude, longitude, instructions } = destination;
  const notes = [check, instructions].filter(Boolean).join('\n');
  return {
    address1: line1,
    ...(line2 && { address2: line2 }),
    city: required('city', city),
    state: stateOf(destination.region, defaultState),
    zipCode: required('postalCode', postalCode),
    ...(country && /^[a-z]{2}$/i.test(country) && { country: country.toUpperCase() }),
    ...(latitude !== undefined && longitude !== undefined && { latitude, longitude }),
    ...(notes && { notes }),
  };
}

function required(field: string, value: string | undefined): string {
  if (value?.trim()) return value;
  throw incomplete(`fulfillment.destination.${field} is missing`);
}

/** Two capital letters, which ISO 3166-2 puts after the country's: MA of US-MA. */
function stateOf(region: string | undefined, defaultState: string | undefined): string {
  if (!region?.trim()) {
    if (defaultState !== undefined) return defaultState;
    throw incomplete('fulfillment.destination.region is missing, and defaultState is not set');
  }
  const state = /^(?:[a-z]{2}-)?([a-z]{2})$/i.exec(region.trim())?.[1];
  if (state === undefined)
    throw incomplete('fulfillment.destination.region is not an abbreviation such as MA or US-MA');
  return state.toUpperCase();
}

function incomplete(message: string): GiveUp {
  return new GiveUp(`Toast would refuse the delivery: ${message}`, {
    reason: 'The restaurant needs the full address: street, city, state and postal code.',
    reasonCode: 'invalid_address',
  });
}
