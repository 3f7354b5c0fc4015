import { flattenModifiers } from '../../core/domain/flatten-modifiers.ts';
import type { CanonicalOrder, KitchenOrder, Modifier } from '../../core/domain/order.ts';
import { toDecimal } from '../../core/domain/money.ts';
import { ageCheck, cutText, type Destination, type Item, joinNotes, takeOff } from '../order-texts.ts';
import { splitName } from '../../core/domain/member-text.ts';
import { neverTaken } from '../refusals.ts';
import { entryOf, posIdOf } from '../shared-settings.ts';
import { type Settings, SKU_MAX } from './payloads.ts';

declare global {
  interface JSON {
    /** https://github.com/tc39/proposal-json-parse-with-source: V8 11.4 has it. TypeScript does not declare it yet. */
    rawJSON(text: string): object;
  }
}

/** Makes a JSON number with exactly these digits for `JSON.stringify`: an int64 beyond 2^53, or an amount. */
function rawNumber(digits: string): object {
  return JSON.rawJSON(digits);
}

const REFERENCE_MAX = 48;
const NAME_MAX = 128;
/** Maximum length of a note. Lightspeed documents none: this is a text column's default length in many databases. */
const NOTE_MAX = 255;
/** Maximum number of discounted pieces, each a line of the check. Lightspeed documents none. Promotions need fewer. */
const DISCOUNTED_MAX = 20;
/** Milliseconds in which a till must take the order. Otherwise Lightspeed reports a failure, and the member can act. */
const DELIVER_WITHIN_MS = 600_000;
/** Milliseconds by which a time must be ahead to be sent. Times "must be in the future" by Lightspeed's clock. */
const AHEAD_MS = 60_000;
const MINUTE_MS = 60_000;

/**
 * Checks the order's id. The id cannot be shortened, because no other field of a webhook identifies the order.
 * @throws GiveUp if it is too long for Lightspeed
 */
export function checkOrder({ serviceOrderId }: CanonicalOrder): void {
  if (serviceOrderId.length <= REFERENCE_MAX) return;
  throw neverTaken(
    `serviceOrderId has ${serviceOrderId.length} characters; Lightspeed's thirdPartyReference takes ${REFERENCE_MAX}`,
  );
}

/**
 * Writes the order for `/o/op/1/order/toGo`: https://api-docs.lsk.lightspeed.app/operation/operation-apeplacetogoorder
 * A number that a double might change is written by `rawNumber`.
 * @throws GiveUp if an id is too long for Lightspeed
 */
export function writeOrder(order: KitchenOrder, settings: Settings, now: Date): Record<string, unknown> {
  const { serviceOrderId, fulfillment, money } = order;
  const { businessLocationId, endpointId, accountProfileCodes, feeSku } = settings;
  checkOrder(order);
  const isDelivery = fulfillment.type === 'delivery';
  const discounts = settings.discountCode === undefined ? undefined : spreadDiscount(order);
  const items = order.items.flatMap((item, nth) =>
    discountPieces(writeItem(item, nth, settings), discounts?.[nth] ?? [], order, settings),
  );
  if (feeSku !== undefined && money.fee > 0) {
    items.push({ quantity: 1, sku: feeSku, customItemPrice: rawNumber(toDecimal(money.fee, money.currency)) });
  }
  return {
    businessLocationId: rawNumber(businessLocationId),
    thirdPartyReference: serviceOrderId,
    endpointId,
    customerInfo: customerOf(order, settings),
    orderNote: noteOf(order, discounts === undefined ? takeOff(order) : undefined, settings),
    // Up to 8 characters. Lightspeed generates a missing code.
    collectionCode: order.callOutCode,
    accountProfileCode: accountProfileCodes[fulfillment.type],
    maxTimeToAttemptOrderDeliverToPos: DELIVER_WITHIN_MS,
    ...timesOf(order, settings, now),
    payment: paymentOf(order, settings),
    items,
    ...(isDelivery && { deliveryAddress: addressOf(fulfillment.destination) }),
  };
}

/** The schema says about the reference: "If the email is left empty, this should be empty as well". */
function customerOf({ member }: CanonicalOrder, { sendCustomerEmail }: Settings): Record<string, unknown> {
  const { first, last } = splitName(member.name);
  return {
    firstName: cutText(first, NAME_MAX),
    ...(last !== '' && { lastName: cutText(last, NAME_MAX) }),
    ...(sendCustomerEmail && member.email && { email: member.email, thirdPartyReference: member.id }),
    contactNumberAsE164: member.phone,
  };
}

/** Puts all texts into the note, the only field for text. A long note is cut, so texts about items come first. */
function noteOf(order: CanonicalOrder, toTakeOff: string | undefined, settings: Settings): string | undefined {
  const { items, notes, fulfillment } = order;
  const instructions = fulfillment.type === 'delivery' ? fulfillment.destination.instructions : undefined;
  return joinNotes(
    NOTE_MAX,
    ageCheck(order),
    toTakeOff,
    ...items.flatMap((item) => severalOf(item, settings)),
    ...items.map((item) => item.notes && `${item.name}: ${item.notes}`),
    instructions && `Delivery: ${instructions}`,
    notes,
  );
}

/** The POS gets the order at `scheduledTimeForOrderAsIso8601`. The member gets it at `orderCollectionTimeAsIso8601`. */
function timesOf({ fulfillment }: CanonicalOrder, { preparationMinutes }: Settings, now: Date): Record<string, string> {
  if (fulfillment.requestedAt === undefined) return {};
  const requested = new Date(fulfillment.requestedAt);
  const begin = new Date(requested.getTime() - preparationMinutes * MINUTE_MS);
  const isAhead = (time: Date): boolean => time.getTime() - now.getTime() > AHEAD_MS;
  return {
    ...(isAhead(begin) && { scheduledTimeForOrderAsIso8601: writeTime(begin) }),
    ...(isAhead(requested) && { orderCollectionTimeAsIso8601: writeTime(requested) }),
  };
}

function writeTime(time: Date): string {
  return time.toISOString().replace(/Z$/, '+00:00');
}

/**
 * The payment must equal the POS's own total: https://www.hubrise.com/apps/lightspeed-restaurant/push-orders
 * `paymentAmount` includes the tip. A payment of 0 is not documented, so it is left out.
 */
function paymentOf({ money }: CanonicalOrder, settings: Settings): Record<string, unknown> | undefined {
  const { tip, fee, total, currency } = money;
  const amount = settings.feeSku === undefined ? total - fee : total;
  if (amount <= 0) return undefined;
  return {
    paymentMethod: settings.paymentMethod,
    paymentAmount: rawNumber(toDecimal(amount, currency)),
    ...(tip > 0 && { tipAmount: rawNumber(toDecimal(tip, currency)) }),
  };
}

/** Lightspeed has no fields for region, country and coordinates. */
function addressOf(destination: Destination): Record<string, unknown> {
  const { line1, line2, postalCode, city } = destination;
  return { addressLine1: line1, addressLine2: line2, zip: postalCode, city };
}

/**
 * Lightspeed only discounts items. No piece gets a discount above its price, because the effect is not documented.
 * @returns undefined if the items, or the first `DISCOUNTED_MAX` pieces, cost less than the discount
 */
function spreadDiscount({ items, money: { discount = 0 } }: CanonicalOrder): number[][] | undefined {
  let left = discount;
  let piecesLeft = DISCOUNTED_MAX;
  const spread = items.map(({ quantity, unitPrice = 0 }) => {
    const pieces = unitPrice === 0 ? 0 : Math.min(quantity, Math.ceil(left / unitPrice), piecesLeft);
    piecesLeft -= pieces;
    return Array.from({ length: pieces }, () => {
      const each = Math.min(left, unitPrice);
      left -= each;
      return each;
    });
  });
  return left > 0 ? undefined : spread;
}

/** Gives each discounted piece a line of its own: on a line of several pieces, the discount might count per piece. */
function discountPieces(
  item: ReturnType<typeof writeItem>,
  discounts: readonly number[],
  { money: { currency } }: CanonicalOrder,
  { discountCode }: Settings,
): Record<string, unknown>[] {
  const pieces = discounts.map((amount) => ({
    ...item,
    quantity: 1,
    discountCode,
    discountAmountOverride: rawNumber(toDecimal(amount, currency)),
  }));
  const quantity = item.quantity - discounts.length;
  return quantity > 0 ? [...pieces, { ...item, quantity }] : pieces;
}

/** An instruction is sent once, because some groups forbid repeats (`multiSelectionPermitted: false`). */
function writeItem(item: Item, nth: number, settings: Settings) {
  const sku = posIdOf(settings.itemMap, item.serviceItemId);
  if (sku.length > SKU_MAX) {
    throw neverTaken(
      `items.${nth} has a SKU of ${sku.length} characters, Lightspeed allows ${SKU_MAX}: add the item to itemMap`,
      {
        reason: 'An item is not on the menu of the restaurant.',
        reasonCode: 'item_unavailable',
        itemIds: [item.serviceItemId],
      },
    );
  }
  return { quantity: item.quantity, sku, ...writeModifiers(item.modifiers, settings) };
}

/** Writes the modifiers. A sub-item may contain modifiers. An instruction may not, so its modifiers become siblings. */
function writeModifiers(given: readonly Modifier[], settings: Settings): object {
  const instructions = new Set<string>();
  const subItems: { quantity: number; sku: string }[] = [];
  const add = ({ serviceModifierId: id, quantity, modifiers = [] }: Modifier, of: number): void => {
    const sku = entryOf(settings.subItemMap, id);
    if (sku !== undefined) {
      subItems.push({ quantity: quantity * of, sku, ...writeModifiers(modifiers, settings) });
      return;
    }
    instructions.add(posIdOf(settings.itemMap, id));
    for (const inner of modifiers) add(inner, quantity * of);
  };
  for (const each of given) add(each, 1);
  const modifiers = [...instructions].map((modifierId) => ({ modifierId }));
  return { ...(modifiers.length > 0 && { modifiers }), ...(subItems.length > 0 && { subItems }) };
}

/** Lists the instructions with a quantity above one, which only the note can express. */
function severalOf({ name, modifiers }: Item, { subItemMap }: Settings): string[] {
  const counts = new Map<string, number>();
  for (const { serviceModifierId, name, quantity } of flattenModifiers(modifiers)) {
    if (entryOf(subItemMap, serviceModifierId) === undefined) counts.set(name, (counts.get(name) ?? 0) + quantity);
  }
  return [...counts].flatMap(([each, count]) => (count > 1 ? [`${name}: ${count} × ${each}`] : []));
}
