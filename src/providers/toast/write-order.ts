import { GiveUp, NeedsOperator } from '../../core/domain/errors.ts';
import { flattenModifiers } from '../../core/domain/flatten-modifiers.ts';
import type { CanonicalOrder, KitchenOrder, Modifier } from '../../core/domain/order.ts';
import { ageCheck, countryCode, cutText, type Destination, type Item, joinNotes, takeOff } from '../order-texts.ts';
import { neverTaken } from '../refusals.ts';
import { entryOf } from '../shared-settings.ts';
import { MENU_ID, type MenuEntry, type Settings } from './payloads.ts';
import { splitName } from '../../core/domain/member-text.ts';
import { minorDigits, toDecimal } from '../../core/domain/money.ts';

/** Maximum length: https://doc.toasttab.com/doc/devguide/apiSpecifyingModifiersAndInstructions.html */
const SPECIAL_REQUEST_MAX = 1000;

/** Maximum number of modifiers in an order. Toast publishes no limit. */
const MODIFIERS_MAX = 500;

/** The form that an id without an entry in `itemMap` must have. */
const PLAIN = new RegExp(`^(${MENU_ID})/(${MENU_ID})$`);

type Group = 'itemGroup' | 'optionGroup';

/**
 * Toast's menu sets the prices.
 * @throws NeedsOperator if neither `itemMap` nor the id itself gives the place in Toast's menu
 */
function writeSelection(item: Item, settings: Settings) {
  const { quantity } = item;
  const { itemMap } = settings;
  const requests = [item.ageRestricted ? 'AGE CHECK' : '', item.notes ?? ''].filter((text) => text.trim() !== '');
  return {
    ...referTo(item.serviceItemId, 'itemGroup', itemMap),
    quantity,
    modifiers: [
      ...item.modifiers.flatMap((modifier) => writeModifier(modifier, quantity, itemMap)),
      // Kitchen displays show the special requests of an item, but not those of the whole check.
      ...requests.map((text) => specialRequest(text, quantity, 'optionGroup', settings)),
    ],
  };
}

/**
 * Limits the modifiers, because each is a selection of its own and makes the request larger.
 * @throws GiveUp above the limit
 */
function limitModifiers(items: readonly Item[]): void {
  const count = items
    .flatMap(({ modifiers }) => flattenModifiers(modifiers))
    .reduce((sum, { quantity }) => sum + quantity, 0);
  if (count <= MODIFIERS_MAX) return;
  throw neverTaken(
    `the order has ${count} pieces of modifiers: Toast requires a modifier for each piece, and ` +
      `no more than ${MODIFIERS_MAX} are sent`,
    { reason: 'The restaurant cannot take this many extras in one order.' },
  );
}

/** Repeats a modifier, because Toast refuses a modifier whose quantity differs from its item's. */
function writeModifier(modifier: Modifier, quantity: number, itemMap: Settings['itemMap']): object[] {
  const selection = {
    ...referTo(modifier.serviceModifierId, 'optionGroup', itemMap),
    quantity,
    modifiers: (modifier.modifiers ?? []).flatMap((nested) => writeModifier(nested, quantity, itemMap)),
  };
  return Array.from({ length: modifier.quantity }, () => selection);
}

/** A request about an item is one of the item's modifiers. A request about the order is one of the selections. */
function specialRequest(text: string, quantity: number, group: Group, { specialRequestItem: entry }: Settings) {
  return {
    selectionType: 'SPECIAL_REQUEST',
    displayName: cutText(text, SPECIAL_REQUEST_MAX),
    quantity,
    ...(entry && { item: reference(entry.item), [group]: reference(entry[group]) }),
  };
}

export function menuIdOf(serviceItemId: string, { itemMap }: Settings): string | undefined {
  return (entryOf(itemMap, serviceItemId) ?? readPlain(serviceItemId, 'itemGroup'))?.item;
}

function referTo(id: string, group: Group, itemMap: Settings['itemMap']) {
  const entry = entryOf(itemMap, id) ?? readPlain(id, group);
  const name = JSON.stringify(id);
  if (entry === undefined) {
    throw new NeedsOperator(
      `itemMap[${name}] is missing, and the id itself is not <${group}'s id>/<item's id> with GUIDs or multiLocationIds`,
    );
  }
  const groupId = entry[group];
  if (groupId === undefined) throw new NeedsOperator(`itemMap[${name}].${group} is missing`);
  return { item: reference(entry.item), [group]: reference(groupId) };
}

/** Toast refuses both kinds of id at once. */
function reference(id: string): { guid: string } | { multiLocationId: string } {
  return id.includes('-') ? { guid: id } : { multiLocationId: id };
}

function readPlain(id: string, group: Group): MenuEntry | undefined {
  const [, groupId, item] = PLAIN.exec(id) ?? [];
  return item === undefined ? undefined : { item, [group]: groupId };
}

type Member = CanonicalOrder['member'];

/** Maximum length, "up to 53 characters", only ASCII: https://doc.toasttab.com/openapi/orders/overview/ */
const EMAIL_MAX = 53;
const EMAIL = /^[!-?A-~]+@[!-\-/-?A-~]+(?:\.[!-\-/-?A-~]+)+$/;

/** Country codes of one and two digits (ITU-T E.164, list of assigned codes). All others have three. */
const SHORT_CODE = /^(1|7|20|27|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58])/;

/**
 * A missing field is not invented, because Toast distinguishes guests by e-mail address, and an invented address might
 * belong to somebody else: https://doc.toasttab.com/doc/devguide/apiOrderTypeDetails.html
 * @throws GiveUp that names the field
 */
export function writeCustomer({ name, email, phone }: Member) {
  const { first, last } = splitName(name);
  if (email === undefined) throw wanting('member.email is missing', 'e-mail address');
  if (email.length > EMAIL_MAX || !EMAIL.test(email)) {
    throw wanting(`member.email is not an address of up to ${EMAIL_MAX} ASCII characters`, 'e-mail address');
  }
  if (phone === undefined) throw wanting('member.phone is missing', 'telephone number');
  // Toast requires two names. A name of one word is sent as both.
  return { firstName: first, lastName: last || first, email, ...writePhone(phone) };
}

/** Numbers of other countries are not checked: Toast does not document how it validates one with a country code. */
function writePhone(e164: string): { phone: string; phoneCountryCode?: string } {
  const digits = e164.slice(1);
  const phoneCountryCode = SHORT_CODE.exec(digits)?.[0] ?? digits.slice(0, 3);
  const phone = digits.slice(phoneCountryCode.length);
  if (phoneCountryCode !== '1') return { phone, phoneCountryCode };
  if (phone.length !== 10)
    throw wanting('member.phone has country code 1, but not ten digits after it', 'telephone number');
  return { phone };
}

function wanting(message: string, what: string): GiveUp {
  return neverTaken(`Toast would refuse the order: ${message}`, {
    reason: `The restaurant cannot take the order without a valid ${what}.`,
  });
}

/**
 * Writes the order without the payment, for `/prices`: https://doc.toasttab.com/openapi/orders/operation/ordersPost/
 * @throws GiveUp if the order lacks what Toast requires; NeedsOperator if the settings lack it
 */
export function writeOrder(order: KitchenOrder, settings: Settings, now: Date) {
  const { fulfillment, money, notes } = order;
  const { discount = 0 } = money;
  const { discountGuid } = settings;
  limitModifiers(order.items);
  const toTakeOff = discountGuid === undefined ? takeOff(order) : undefined;
  const note = joinNotes(SPECIAL_REQUEST_MAX, ageCheck(order), toTakeOff, notes);
  return {
    diningOption: { guid: settings.diningOptionGuids[fulfillment.type] },
    ...writeSchedule(fulfillment.requestedAt, now),
    ...(fulfillment.type === 'delivery' && {
      deliveryInfo: writeDelivery(fulfillment.destination, ageCheck(order), settings.defaultState),
    }),
    checks: [
      {
        // The kitchen's screens show it while the order waits. Toast takes up to 255 characters.
        tabName: order.callOutCode,
        customer: writeCustomer(order.member),
        selections: [
          ...order.items.map((item) => writeSelection(item, settings)),
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
        // All discounts are sent as one, because the restaurant may not allow a discount twice.
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
 * Checks the member, the address and the number of modifiers. A missing state is allowed: the settings may have one.
 * @throws GiveUp if the order lacks what Toast requires
 */
export function checkOrder({ items, member, fulfillment }: CanonicalOrder): void {
  limitModifiers(items);
  writeCustomer(member);
  if (fulfillment.type === 'delivery') writeDelivery(fulfillment.destination, undefined, 'NY');
}

/**
 * Writes the payment of the amount due at Toast. If staff still have to subtract the discount, the payment is lower by
 * the discount. The check stays open by this amount until they subtract it.
 * @param due Toast's total as received, a decimal
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

/** Returns the amount as a double. JSON writes the shortest decimal of a double, which is exactly the amount. */
function amountOf(minorUnits: number, currency: string): number {
  return Number(toDecimal(minorUnits, currency));
}

/** `openedDate` books the order on the right day: https://doc.toasttab.com/doc/devguide/orders_api_future_orders.html */
function writeSchedule(requestedAt: string | undefined, now: Date) {
  if (requestedAt === undefined) return {};
  const at = new Date(requestedAt);
  return at > now ? { promisedDate: writeTime(at), openedDate: writeTime(at) } : {};
}

/** Writes a time as Toast's examples do: `2022-03-05T16:00:00.000+0000`. */
export function writeTime(time: Date): string {
  return time.toISOString().replace('Z', '+0000');
}

function writeDelivery(destination: Destination, check: string | undefined, defaultState: string | undefined) {
  const { line1, line2, city, postalCode, country, latitude, longitude, instructions } = destination;
  const notes = [check, instructions].filter(Boolean).join('\n');
  const code = countryCode(country);
  return {
    address1: line1,
    ...(line2 && { address2: line2 }),
    city: required('city', city),
    state: stateOf(destination.region, defaultState),
    zipCode: required('postalCode', postalCode),
    ...(code && { country: code }),
    ...(latitude !== undefined && longitude !== undefined && { latitude, longitude }),
    ...(notes && { notes }),
  };
}

function required(field: string, value: string | undefined): string {
  if (value?.trim()) return value;
  throw incomplete(`fulfillment.destination.${field} is missing`);
}

/** Reads a state's two letters from a region such as MA or, as ISO 3166-2 writes it, US-MA. */
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
