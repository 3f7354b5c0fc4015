import type { CanonicalOrder, KitchenOrder, Modifier } from '../../core/domain/order.ts';
import { splitName } from '../../core/domain/member-text.ts';
import { countryCode, cutText, type Item, orderNote } from '../order-texts.ts';
import { neverTaken } from '../refusals.ts';
import { discountsOf, feesOf, minorDigits, taxesOnTop, toDecimal } from '../../core/domain/money.ts';
import { flattenModifiers } from '../../core/domain/flatten-modifiers.ts';
import { entryOf } from '../shared-settings.ts';
import type { Settings } from './payloads.ts';

// HubRise documents a maximum length only for private refs. We use it for names. Longer notes do not help a kitchen.
const NAME_MAX = 255;
const NOTE_MAX = 2000;

/** Writes the member with the order's address, for a guest's order or a customer list. */
export function writeCustomer({ member, fulfillment }: CanonicalOrder): object {
  const { first, last } = splitName(member.name);
  const to = fulfillment.destination;
  return {
    first_name: cutText(first, NAME_MAX),
    last_name: last === '' ? undefined : cutText(last, NAME_MAX),
    email: member.email,
    phone: member.phone,
    address_1: to?.line1 && cutText(to.line1, NAME_MAX),
    address_2: to?.line2 && cutText(to.line2, NAME_MAX),
    postal_code: to?.postalCode && cutText(to.postalCode, NAME_MAX),
    city: to?.city && cutText(to.city, NAME_MAX),
    state: to?.region && cutText(to.region, NAME_MAX),
    country: countryCode(to?.country),
    latitude: to?.latitude?.toFixed(7),
    longitude: to?.longitude?.toFixed(7),
    delivery_notes: to?.instructions && cutText(to.instructions, NOTE_MAX),
  };
}

/**
 * Writes an amount with "2 decimal digits": https://www.hubrise.com/developers/api/general-concepts#monetary-values
 * An amount that needs a third decimal is not rounded, because it would no longer be the paid amount.
 * @throws GiveUp for such an amount
 */
export function writeMoney(minorUnits: number, currency: string): string {
  const digits = minorDigits(currency);
  const [whole = '', decimals = ''] = toDecimal(minorUnits, currency).split('.');
  if (/[^0]/.test(decimals.slice(2))) {
    throw neverTaken(`an amount in ${currency} needs ${digits} decimals, and HubRise takes two`, {
      reason: 'The restaurant cannot take this exact amount.',
    });
  }
  return `${whole}.${decimals.slice(0, 2).padEnd(2, '0')} ${currency}`;
}

/**
 * Milliseconds by which a requested time must be ahead. When the request arrives, the time must still be in the future
 * by HubRise's clock. An order for a nearer time is sent without the time, which means as soon as possible.
 */
const AHEAD_MS = 60_000;

const OPTION_LIST = 'Options';

/** More identical options are sent as one object with a quantity. */
const SEPARATE_OPTIONS = 50;

/**
 * Writes the order for `POST /location/orders`: https://www.hubrise.com/developers/api/orders#create-order and
 * https://www.hubrise.com/developers/integration-guide#encoding-orders.
 * @param now decides whether `requestedAt` is still in the future
 * @param customerId the id of an attached customer. Without it the order is a guest's
 * @throws GiveUp if HubRise's format cannot express the order
 */
export function writeOrder(order: KitchenOrder, itemMap: Settings['itemMap'], now: Date, customerId?: string): object {
  const { serviceOrderId, fulfillment, items, money } = order;
  const { requestedAt } = fulfillment;
  const isAhead = requestedAt !== undefined && Date.parse(requestedAt) >= now.getTime() + AHEAD_MS;
  return {
    status: 'new',
    ref: serviceOrderId,
    private_ref: serviceOrderId,
    service_type: fulfillment.type === 'delivery' ? 'delivery' : 'collection',
    ...(isAhead && { expected_time: requestedAt }),
    collection_code: order.callOutCode,
    customer_notes: orderNote(order, NOTE_MAX),
    items: items.map((item, nth) => writeItem(item, `items.${nth}`, money.currency, itemMap)),
    charges: chargesOf(order).map(({ name, ref, amount }) => ({
      name: cutText(name, NAME_MAX),
      ref: lookUp(ref, itemMap).ref,
      price: writeMoney(amount, money.currency),
    })),
    discounts: discountsOf(order).map(({ name, amount }) => ({
      name: cutText(name, NAME_MAX),
      ref: lookUp('DISCOUNT', itemMap).ref,
      price_off: writeMoney(amount, money.currency),
    })),
    payments: [
      { name: 'Paid online', ref: lookUp('ONLINE', itemMap).ref, amount: writeMoney(money.total, money.currency) },
    ],
    ...(customerId === undefined ? { customer: writeCustomer(order) } : { customer_id: customerId }),
  };
}

function writeItem(item: Item, path: string, currency: string, itemMap: Settings['itemMap']): object {
  const { serviceItemId, name, quantity, unitPrice, notes, modifiers } = item;
  if (unitPrice === undefined) {
    throw neverTaken(`${path}.unitPrice is missing: HubRise requires the price of every item`);
  }
  return {
    product_name: cutText(name, NAME_MAX),
    sku_ref: lookUp(serviceItemId, itemMap).ref,
    price: writeMoney(unitPrice, currency),
    quantity: String(quantity),
    customer_notes: notes && cutText(notes, NOTE_MAX),
    options: flattenModifiers(modifiers).flatMap((modifier) => writeOptions(modifier, currency, itemMap)),
  };
}

function writeOptions(modifier: Modifier, currency: string, itemMap: Settings['itemMap']): object[] {
  const { serviceModifierId, name, quantity, unitPrice } = modifier;
  const { ref, optionListName = OPTION_LIST } = lookUp(serviceModifierId, itemMap);
  const option = {
    option_list_name: optionListName,
    name: cutText(name, NAME_MAX),
    ref,
    ...(unitPrice !== undefined && { price: writeMoney(unitPrice, currency) }),
  };
  if (quantity > SEPARATE_OPTIONS) return [{ ...option, quantity }];
  return Array.from({ length: quantity }, () => ({ ...option, quantity: 1 }));
}

/** All paid amounts except the items. So HubRise's total, less the discounts, is the paid amount. */
function chargesOf(order: CanonicalOrder): { name: string; ref: string; amount: number }[] {
  const [fee, ref] =
    order.fulfillment.type === 'delivery' ? ['Delivery fee', 'DELIVERY_FEE'] : ['Service fee', 'SERVICE_FEE'];
  return [
    ...feesOf(order, fee).map((each) => ({ ...each, ref })),
    { name: 'Tip', ref: 'TIP', amount: order.money.tip },
    ...taxesOnTop(order).map((each) => ({ ...each, ref: 'TAX' })),
  ].filter(({ amount }) => amount > 0);
}

function lookUp(id: string, itemMap: Settings['itemMap']): { ref: string; optionListName?: string | undefined } {
  const mapped = entryOf(itemMap, id);
  return typeof mapped === 'object' ? mapped : { ref: mapped ?? id };
}
