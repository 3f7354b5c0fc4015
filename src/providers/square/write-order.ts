import { createHash } from 'node:crypto';
import type { CanonicalOrder, KitchenOrder } from '../../core/domain/order.ts';
import { discountsOf, feesOf, toDecimal } from '../../core/domain/money.ts';
import { flattenModifiers } from '../../core/domain/flatten-modifiers.ts';
import { countryCode, cutText, type Destination, orderNote } from '../order-texts.ts';
import { posIdOf } from '../shared-settings.ts';
import type { Settings, SquareOrder } from './payloads.ts';

/**
 * Requests depend only on the order and the settings, never on the time, because Square refuses a known idempotency key
 * with another body: https://developer.squareup.com/docs/build-basics/common-api-patterns/idempotency
 */

/** Square's limits, in characters: https://developer.squareup.com/reference/square/orders-api/create-order */
const REFERENCE_MAX = 40;
const TICKET_NAME_MAX = 30;
const LINE_NOTE_MAX = 2000;
const NAME_MAX = 255;
const EMAIL_MAX = 255;
const PICKUP_NOTE_MAX = 500;
const DELIVERY_NOTE_MAX = 550;

const COURIER_TIP = 'Courier tip';

/**
 * Derives an idempotency key of 43 characters. Square allows 45 for a payment. The key depends on the purpose, because
 * Square does not document whether two endpoints may get the same key.
 */
export function keyOf(purpose: 'order' | 'payment' | 'pay-order' | `cancel ${number}`, serviceOrderId: string): string {
  return createHash('sha256').update(`${purpose}\n${serviceOrderId}`).digest('base64url');
}

/** Returns our id if it fits. Otherwise returns its beginning, for people, and enough of its hash to be unique. */
export function referenceOf(serviceOrderId: string): string {
  if (serviceOrderId.length <= REFERENCE_MAX) return serviceOrderId;
  const hash = createHash('sha256').update(serviceOrderId).digest('hex').slice(0, 16);
  return `${serviceOrderId.slice(0, REFERENCE_MAX - 17).replace(/[\uD800-\uDBFF]$/, '')}-${hash}`;
}

/** We send no tax: ours is an amount. Square takes only percentages, and computes the tax by the seller's rates. */
export function writeOrder(order: KitchenOrder, settings: Settings) {
  const { locationId, itemMap, ownCouriers = true, deliveredBy = ownCouriers ? 'restaurant' : 'platform' } = settings;
  const { serviceOrderId, member, money, fulfillment } = order;
  const { currency } = money;
  const reference = referenceOf(serviceOrderId);
  const price = (unitPrice: number | undefined) =>
    unitPrice !== undefined && { base_price_money: { amount: unitPrice, currency } };
  const charges = [
    ...feesOf(order).map(({ name, amount }) =>
      // `staffTip` finds the courier's tip by this name.
      writeCharge(name === COURIER_TIP ? 'Fee' : cutText(name, NAME_MAX), amount, currency),
    ),
    ...(money.tip > 0 && fulfillment.type === 'delivery' && deliveredBy !== 'restaurant'
      ? [writeCharge(COURIER_TIP, money.tip, currency)]
      : []),
  ];

  const discounts = discountsOf(order).map(({ name, amount }) => ({
    name: cutText(name, NAME_MAX),
    type: 'FIXED_AMOUNT',
    amount_money: { amount, currency },
    scope: 'ORDER',
  }));

  return {
    idempotency_key: keyOf('order', serviceOrderId),
    order: {
      location_id: locationId,
      reference_id: reference,
      ...(reference !== serviceOrderId && { metadata: { service_order_id: serviceOrderId } }),
      // The code comes first, because a long name is cut.
      ticket_name: cutText([order.callOutCode, member.name].filter(Boolean).join(' '), TICKET_NAME_MAX),
      line_items: order.items.map((item) => ({
        catalog_object_id: posIdOf(itemMap, item.serviceItemId),
        quantity: String(item.quantity),
        ...price(item.unitPrice),
        ...(item.notes && { note: cutText(item.notes, LINE_NOTE_MAX) }),
        ...(item.modifiers.length > 0 && {
          modifiers: flattenModifiers(item.modifiers).map((modifier) => ({
            catalog_object_id: posIdOf(itemMap, modifier.serviceModifierId),
            quantity: String(modifier.quantity),
            ...price(modifier.unitPrice),
          })),
        }),
      })),
      ...(discounts.length > 0 && { discounts }),
      ...(charges.length > 0 && { service_charges: charges }),
      pricing_options: { auto_apply_taxes: true },
      fulfillments: [writeFulfillment(order, settings)],
    },
  };
}

/** Writes a service charge that is added after taxes and not taxed, because the member saw this amount. */
function writeCharge(name: string, amount: number, currency: string) {
  return { name, amount_money: { amount, currency }, calculation_phase: 'TOTAL_PHASE', taxable: false };
}

function writeFulfillment(order: CanonicalOrder, { prepMinutes }: Settings) {
  const { type, destination } = order.fulfillment;
  const isPickup = type === 'pickup';
  const note = orderNote(order, isPickup ? PICKUP_NOTE_MAX : DELIVERY_NOTE_MAX);
  const at = requestedAt(order);
  const to = isPickup ? undefined : destination;
  const details = {
    recipient: { ...writeRecipient(order), ...(to && { address: writeAddress(to) }) },
    ...(at === undefined
      ? { schedule_type: 'ASAP', prep_time_duration: `PT${prepMinutes[type]}M` }
      : { schedule_type: 'SCHEDULED', [isPickup ? 'pickup_at' : 'deliver_at']: at }),
    ...(note && { note }),
    ...(to?.instructions && { dropoff_notes: cutText(to.instructions, DELIVERY_NOTE_MAX) }),
  };
  return { type: isPickup ? 'PICKUP' : 'DELIVERY', state: 'PROPOSED', [`${type}_details`]: details };
}

/** The requested time if it is after `placedAt`. It is not compared with now, so that a later repeat is the same. */
function requestedAt({ fulfillment: { requestedAt }, placedAt }: CanonicalOrder): string | undefined {
  return requestedAt !== undefined && Date.parse(requestedAt) > Date.parse(placedAt) ? requestedAt : undefined;
}

/** Writes the recipient. An invalid e-mail address is left out: Square would refuse it, and no kitchen needs it. */
function writeRecipient({ member: { name, email, phone } }: CanonicalOrder) {
  return {
    display_name: cutText(name, NAME_MAX),
    ...(phone && { phone_number: phone }),
    ...(email &&
      email.length <= EMAIL_MAX &&
      /^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/.test(email) && { email_address: email }),
  };
}

function writeAddress({ line1, line2, city, region, postalCode, country }: Destination) {
  const code = countryCode(country);
  return {
    address_line_1: line1,
    ...(line2 && { address_line_2: line2 }),
    ...(city && { locality: city }),
    ...(region && { administrative_district_level_1: region }),
    ...(postalCode && { postal_code: postalCode }),
    ...(code && { country: code }),
  };
}

/** The charges of the order at Square decide, because the settings may have changed since the order was created. */
function staffTip({ money }: CanonicalOrder, square: SquareOrder): number {
  return square.service_charges?.some(({ name }) => name === COURIER_TIP) ? 0 : money.tip;
}

/** Square accepts only its own total as the amount: https://developer.squareup.com/docs/orders-api/pay-for-orders */
export function writePayment(order: CanonicalOrder, square: SquareOrder, locationId: string) {
  const { serviceOrderId } = order;
  const { currency, total } = order.money;
  const tip = staffTip(order, square);
  const due = square.total_money.amount;
  const inWords = (amount: number): string => `${toDecimal(amount, currency)} ${currency}`;
  return {
    idempotency_key: keyOf('payment', serviceOrderId),
    source_id: 'EXTERNAL',
    amount_money: { amount: due, currency },
    ...(tip > 0 && { tip_money: { amount: tip, currency } }),
    order_id: square.id,
    location_id: locationId,
    reference_id: referenceOf(serviceOrderId),
    ...(total !== due + tip && {
      note: `Paid online: ${inWords(total)}. This order at Square: ${inWords(due + tip)}.`,
    }),
    external_details: { type: 'EXTERNAL', source: 'Online ordering', source_id: serviceOrderId },
  };
}
