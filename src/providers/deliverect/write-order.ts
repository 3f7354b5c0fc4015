import { GiveUp } from '../../core/domain/errors.ts';
import { type CanonicalOrder, type KitchenOrder, type Modifier, NOT_BLANK } from '../../core/domain/order.ts';
import { splitStreet } from '../../core/domain/member-text.ts';
import { discountsOf, minorDigits, taxesOnTop } from '../../core/domain/money.ts';
import { type Destination, type Item, orderNote } from '../order-texts.ts';
import { neverTaken } from '../refusals.ts';
import { posIdOf } from '../shared-settings.ts';
import type { Settings } from './payloads.ts';

/** The fields that Deliverect requires in addition to the street, each with words for the member. */
const REQUIRED = [
  ['postalCode', 'a postal code'],
  ['city', 'a city'],
  ['country', 'a country'],
] as const;

/**
 * The street must not repeat the number: https://developers.deliverect.com/page/glossary-delivery-only-model
 * @throws GiveUp if a required field is missing
 */
function writeAddress(destination: Destination): Record<string, unknown> {
  const { line1, line2, city, postalCode, region, country, latitude, longitude, instructions } = destination;
  for (const [field, words] of REQUIRED) {
    if (!NOT_BLANK.test(destination[field] ?? '')) throw lacks(field, 'is missing', words);
  }
  const { street, houseNumber, rest } = readLine(line1, country);
  const extra = [rest, line2, region, instructions].filter(Boolean).join(', ');
  return {
    street,
    // A house may have a name in place of a number. The whole line is then the street.
    streetNumber: houseNumber || NO_NUMBER,
    postalCode,
    city,
    country,
    ...(extra !== '' && { extraAddressInfo: extra }),
    ...(latitude !== undefined && longitude !== undefined && { coordinates: { latitude, longitude } }),
  };
}

/** The number of a house in whose line no number is found. Deliverect requires one. */
const NO_NUMBER = '-';
const BARE_NUMBER = /^\d+ ?[a-zA-Z]?$/;

/**
 * Finds the house number in a line that commas divide into parts: at either end of the first part, or at the beginning
 * of a later part, as in "Flat 4, 12 High Street". A part that is only a number belongs to the street next to it:
 * "Calle Mayor, 5", "14, rue de la Paix". No other number is used, because the courier would go to the wrong house.
 */
function readLine(line: string, country: string | undefined): { street: string; houseNumber: string; rest: string } {
  const parts = line.split(',').map((part) => part.trim());
  for (const [nth, part] of parts.entries()) {
    const alone = splitStreet(part, country);
    const pair = parts.slice(nth, nth + 2);
    const isPair = alone.houseNumber === '' && pair.some((each) => BARE_NUMBER.test(each));
    const { street, houseNumber } = isPair ? splitStreet(pair.join(', '), country) : alone;
    if (houseNumber !== '' && (nth === 0 || part.startsWith(houseNumber))) {
      return { street, houseNumber, rest: parts.toSpliced(nth, isPair ? 2 : 1).join(', ') };
    }
  }
  return { street: line, houseNumber: '', rest: '' };
}

function lacks(field: string, problem: string, words: string): GiveUp {
  return new GiveUp(`fulfillment.destination.${field} ${problem}, and Deliverect requires ${words} for a delivery`, {
    reason: `The restaurant could not take this order: its address needs ${words}.`,
    reasonCode: 'invalid_address',
  });
}

/** Deliverect documents no maximum length of ids, names and notes. */
const UNLIMITED = Infinity;
/** An order that is due within these milliseconds is ASAP: https://developers.deliverect.com/page/channel-orders */
const ASAP_MS = 30 * 60_000;
/** The payment type "credit card online". The other is cash. https://developers.deliverect.com/page/payment-types */
const PAID_ONLINE = 0;

/**
 * Writes the order: https://developers.deliverect.com/page/channel-orders. Amounts are in minor units, like ours.
 * @throws GiveUp if an item has no price, or a delivery's address is incomplete
 */
export function writeOrder(
  order: KitchenOrder,
  settings: Pick<Settings, 'itemMap' | 'deliveredBy' | 'channelName'>,
  now: Date,
): Record<string, unknown> {
  const { fulfillment, items, member, money } = order;
  const isDelivery = fulfillment.type === 'delivery';
  return {
    channelOrderId: order.serviceOrderId,
    // Up to 12 characters: https://developers.deliverect.com/page/glossary-pos-orders
    channelOrderDisplayId: order.callOutCode,
    orderType: isDelivery ? 2 : 1,
    ...timesOf(order, now),
    placedTime: writeTime(new Date(order.placedAt)),
    ...courierOf(order, settings),
    ageCheck: items.some((item) => item.ageRestricted),
    ...(isDelivery && { deliveryAddress: writeAddress(fulfillment.destination) }),
    decimalDigits: minorDigits(money.currency),
    payment: { amount: money.total, type: PAID_ONLINE, due: 0 },
    orderIsAlreadyPaid: true,
    ...(isDelivery ? { deliveryCost: money.fee } : { serviceCharge: money.fee }),
    ...writeDiscounts(order),
    // The taxes that are added to the prices: https://developers.deliverect.com/page/tax-exclusive-orders
    taxes: taxesOnTop(order).map(({ name, amount }) => ({ name, total: amount })),
    items: items.map((item, nth) => writeItem(item, nth, settings)),
    note: orderNote(order, UNLIMITED),
    customer: { name: member.name, phoneNumber: member.phone, email: member.email },
  };
}

/** A platform that delivers names itself as the courier. `restaurant` also stands for Deliverect's Dispatch. */
function courierOf(
  { fulfillment, money: { tip } }: CanonicalOrder,
  { deliveredBy, channelName }: Pick<Settings, 'deliveredBy' | 'channelName'>,
) {
  if (fulfillment.type === 'pickup' || deliveredBy === 'restaurant') return { courier: 'restaurant', tip };
  return { courier: deliveredBy === 'platform' ? channelName : 'restaurant', tip: 0, driverTip: tip };
}

/**
 * Writes the times. Deliverect hides an order whose pickupTime has passed, so an ASAP order gets the present time:
 * https://developers.deliverect.com/docs/orders-not-showing-in-deliverect-account
 * A delivery needs a pickupTime too. Deliverect does not document which time this is, and only the restaurant knows how
 * long the drive takes. So pickupTime and deliveryTime are both the time that the member requested.
 */
function timesOf({ fulfillment, extraMinutes }: KitchenOrder, now: Date): Record<string, unknown> {
  const { type, requestedAt } = fulfillment;
  const earliest = now.getTime() + (extraMinutes ?? 0) * 60_000;
  const wanted = new Date(Math.max(earliest, requestedAt === undefined ? earliest : Date.parse(requestedAt)));
  return {
    deliveryIsAsap: extraMinutes === undefined && wanted.getTime() - now.getTime() <= ASAP_MS,
    pickupTime: writeTime(wanted),
    ...(wanted > now && type === 'delivery' && { deliveryTime: writeTime(wanted) }),
  };
}

/** Writes a time in UTC as yyyy-MM-ddTHH:mm:ssZ. */
function writeTime(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}

function writeDiscounts(order: CanonicalOrder): Record<string, unknown> {
  const discounts = discountsOf(order);
  if (discounts.length === 0) return {};
  return {
    discountTotal: -discounts.reduce((sum, { amount }) => sum + amount, 0),
    discounts: discounts.map(({ name, amount }, nth) => ({
      type: 'order_flat_off',
      provider: 'restaurant',
      name,
      channelDiscountCode: '',
      referenceId: nth + 1,
      value: amount,
      amount,
    })),
  };
}

function writeItem(item: Item, nth: number, { itemMap }: Pick<Settings, 'itemMap'>): Record<string, unknown> {
  if (item.unitPrice === undefined) {
    throw neverTaken(`items.${nth}.unitPrice is missing, and Deliverect requires a price`, {
      reason: 'The restaurant could not take this order: an item has no price.',
      itemIds: [item.serviceItemId],
    });
  }
  return {
    plu: posIdOf(itemMap, item.serviceItemId),
    name: item.name,
    price: item.unitPrice,
    quantity: item.quantity,
    remark: item.notes,
    subItems: writeSubItems(item.modifiers, itemMap),
  };
}

function writeSubItems(modifiers: readonly Modifier[], itemMap: Settings['itemMap']): object[] {
  return modifiers.map(({ serviceModifierId, name, unitPrice = 0, quantity, modifiers = [] }) => ({
    plu: posIdOf(itemMap, serviceModifierId),
    name,
    price: unitPrice,
    quantity,
    subItems: writeSubItems(modifiers, itemMap),
  }));
}
