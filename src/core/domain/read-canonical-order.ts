import { z } from 'zod';
import { isObject } from './json-text.ts';
import { toCauseText } from './cause-text.ts';
import { NeedsOperator } from './errors.ts';
import type { LeftOut, LeftOutCode } from './left-out.ts';
import { CanonicalOrder, NOT_BLANK, PARTS, TEXT_MAX } from './order.ts';
import { describeCause } from './explain-cause.ts';
import { shapeIssues, type ShapeIssue } from './shape-issues.ts';
import { toE164 } from './to-e164.ts';

export type ReadOrder = { order: CanonicalOrder; leftOut: readonly LeftOut[] };

/** A cancelled order that cannot be read. Nothing else of it is needed. `skipped`: the mapper says that it is not for us. */
const CancelOnly = CanonicalOrder.pick({ serviceOrderId: true, cancelledAt: true })
  .required()
  .extend({ cancelReason: CanonicalOrder.shape.cancelReason.catch(undefined), skipped: z.string().optional() });
export type CancelOnly = { order?: undefined } & z.infer<typeof CancelOnly>;

/** The most left-out fields listed for one order, which may have thousands of lines with the same mistake. */
const LEFT_OUT_MAX = 20;

/**
 * Fields that the kitchen and the driver can do without. No other field is left out: an order without its notes,
 * modifiers, price or time would be a different order, and some POS systems would finally refuse it.
 */
const SPARED = new Map<string, LeftOutCode>([
  ['member.phone', 'phone_unusable'],
  ['member.email', 'email_unusable'],
  ['fulfillment.destination.latitude', 'coordinates_unusable'],
  ['fulfillment.destination.longitude', 'coordinates_unusable'],
  ['fulfillment.destination.line2', 'address_unusable'],
  ['fulfillment.destination.city', 'address_unusable'],
  ['fulfillment.destination.postalCode', 'address_unusable'],
  ['fulfillment.destination.region', 'address_unusable'],
  ['fulfillment.destination.country', 'address_unusable'],
  ['fulfillment.destination.instructions', 'address_unusable'],
]);
const DESTINATION = 'fulfillment.destination';
const COUNTRY = /^[A-Z]{2}$/i;

/**
 * Reads an order of the ordering platform. Cuts over-long texts, and leaves out unusable fields of `SPARED`.
 * @param about.serviceOrderId the requested id
 * @param about.country the location's country as ISO 3166-1 alpha-2, for a telephone number in national form; the
 *   destination's country has precedence
 * @throws NeedsOperator if anything else is wrong
 */
export function readCanonicalOrder(
  value: unknown,
  about: { serviceOrderId: string; country?: string | undefined },
): ReadOrder {
  const given = withoutNulls(value);
  const leftOut: LeftOut[] = [];
  const leaveOut = (code: LeftOutCode, path: string): void => {
    if (leftOut.length < LEFT_OUT_MAX) leftOut.push({ code, path: toCauseText(path) });
  };
  removeBlanks(given);
  readCountry(given, leaveOut);
  readContact(given, about.country, leaveOut);
  tidyParts(given);
  for (;;) {
    const parsed = CanonicalOrder.safeParse(given, { reportInput: true });
    if (parsed.success) {
      const { data: order } = parsed;
      if (order.serviceOrderId !== about.serviceOrderId) throw unreadable([ANOTHER]);
      const otherSum = PARTS.filter(({ list, sum }) => sumAmounts(order[list]) !== order.money[sum] && order[list]);
      if (otherSum.length > 0) throw unreadable(otherSum.map(otherSumOf));
      for (const path of unknownFields(given, order)) leaveOut('field_unknown', path);
      return { order, leftOut };
    }
    const required = parsed.error.issues.filter((issue) => !fix(given, issue, leaveOut));
    if (required.length > 0) throw unreadable(shapeIssues({ issues: required }));
  }
}

/**
 * Reads an order, or if that is not possible, its cancel: a platform may empty an order that it cancels.
 * @throws NeedsOperator if the order cannot be read, unless it is the requested one and has a valid `cancelledAt`
 */
export function readOrderOrCancel(
  value: unknown,
  about: { serviceOrderId: string; country?: string | undefined },
): ReadOrder | CancelOnly {
  try {
    return readCanonicalOrder(value, about);
  } catch (error) {
    const { data } = CancelOnly.safeParse(withoutNulls(value));
    // guard: cancel-of-this-order
    if (data === undefined || data.serviceOrderId !== about.serviceOrderId) throw error;
    return data;
  }
}

const ANOTHER: ShapeIssue = { path: 'serviceOrderId', received: 'string', says: 'is not the id that was requested' };
const otherSumOf = ({ list, sum }: (typeof PARTS)[number]): ShapeIssue => ({
  path: list,
  received: 'array',
  says: `do not add up to money.${sum}`,
});

function unreadable(issues: ShapeIssue[]): NeedsOperator {
  const cause = { code: 'order_unreadable', issues } as const;
  return new NeedsOperator(describeCause(cause), { cause });
}

type Fields = Record<string, unknown>;
type LeaveOut = (code: LeftOutCode, path: string) => void;

/** Removes blank texts: some platforms send them for missing values, and a POS would print them. */
function removeBlanks(given: unknown): void {
  const remove = (parent: unknown, field: string): void => {
    if (isObject(parent) && isBlank(parent[field])) delete parent[field];
  };
  remove(given, 'notes');
  remove(given, 'cancelReason');
  const items = fieldOf(given, ['items']);
  if (Array.isArray(items)) items.forEach((item) => remove(item, 'notes'));
  for (const path of SPARED.keys()) {
    const names = path.split('.');
    remove(fieldOf(given, names.slice(0, -1)), names.at(-1) ?? '');
  }
  const fulfillment = fieldOf(given, ['fulfillment']);
  if (!isObject(fulfillment) || fulfillment['type'] !== 'pickup') return;
  const { destination } = fulfillment;
  if (isObject(destination) && Object.values(destination).every(isBlank)) delete fulfillment['destination'];
}

/** Leaves out a country that is not two letters, such as a name. */
function readCountry(given: unknown, leaveOut: LeaveOut): void {
  const destination = fieldOf(given, ['fulfillment', 'destination']);
  if (!isObject(destination) || typeof destination['country'] !== 'string') return;
  if (COUNTRY.test(destination['country'].trim())) return;
  delete destination['country'];
  leaveOut('address_unusable', `${DESTINATION}.country`);
}

/** Converts a telephone number to E.164, and leaves out an invalid e-mail address. */
function readContact(given: unknown, locationCountry: string | undefined, leaveOut: LeaveOut): void {
  const member = fieldOf(given, ['member']);
  if (!isObject(member)) return;
  const { phone, email } = member;
  if (typeof phone === 'string') member['phone'] = toE164(phone, countryOf(given, locationCountry)) ?? phone;
  if (typeof email !== 'string') return;
  if (/^[^\s@]+@[^\s@]+$/.test(email.trim())) member['email'] = email.trim();
  else {
    delete member['email'];
    leaveOut('email_unusable', 'member.email');
  }
}

/** Removes blank names and empty lists of discounts, fees and taxes, and adds up those whose sum is missing. */
function tidyParts(given: unknown): void {
  const money = fieldOf(given, ['money']);
  for (const { list, sum } of PARTS) {
    const parts = fieldOf(given, [list]);
    if (!Array.isArray(parts)) continue;
    for (const each of parts) {
      if (isObject(each) && isBlank(each['name'])) delete each['name'];
    }
    if (parts.length === 0) delete (given as Fields)[list];
    // An order without discounts has no sum of them.
    if (!isObject(money) || money[sum] !== undefined || (parts.length === 0 && sum === 'discount')) continue;
    const added = sumAmounts(parts as { amount?: unknown }[]);
    // If an amount is not a number, the parser reports it.
    if (Number.isSafeInteger(added)) money[sum] = added;
  }
}

function sumAmounts(parts: readonly ({ amount?: unknown } | null)[] = []): number {
  return parts.reduce((sum, part) => sum + Number(part?.amount), 0);
}

/** The country for a national number: the destination's if that is a country code, or else the location's. */
function countryOf(given: unknown, locationCountry: string | undefined): string | undefined {
  const country = fieldOf(given, ['fulfillment', 'destination', 'country']);
  return [country, locationCountry]
    .map((each) => (typeof each === 'string' ? each.trim() : ''))
    .find((each) => COUNTRY.test(each));
}

/**
 * Cuts or leaves out the field of an issue.
 * @returns false if the order cannot do without it
 */
function fix(
  given: unknown,
  issue: { path: PropertyKey[]; code?: string; maximum?: unknown },
  leaveOut: LeaveOut,
): boolean {
  const path = issue.path.join('.');
  const parent = fieldOf(given, issue.path.slice(0, -1));
  const field = String(issue.path.at(-1));
  const text = isObject(parent) ? parent[field] : undefined;
  if (issue.code === 'too_big' && issue.maximum === TEXT_MAX && typeof text === 'string' && path !== 'member.email') {
    (parent as Fields)[field] = text.slice(0, TEXT_MAX).toWellFormed();
    leaveOut('text_too_long', path);
    return true;
  }
  const code = SPARED.get(path);
  if (code !== undefined && isObject(parent)) {
    delete parent[field];
    leaveOut(code, path);
    return true;
  }
  const fulfillment = fieldOf(given, ['fulfillment']);
  if (!`${path}.`.startsWith(`${DESTINATION}.`) || !isObject(fulfillment) || fulfillment['type'] !== 'pickup')
    return false;
  // A pickup needs no destination.
  if (Object.hasOwn(fulfillment, 'destination')) leaveOut('address_unusable', DESTINATION);
  delete fulfillment['destination'];
  return true;
}

/** Lists fields that our orders do not have, with `*` for all entries of a list and `?` for a name that may be data. */
function unknownFields(given: unknown, read: unknown): Set<string> {
  const found = new Set<string>();
  const compare = (from: unknown, to: unknown, path: string): void => {
    if (Array.isArray(from) && Array.isArray(to)) from.forEach((each, nth) => compare(each, to[nth], `${path}.*`));
    else if (isObject(from) && isObject(to)) {
      for (const [field, value] of Object.entries(from)) {
        const at = path === '' ? field : `${path}.${field}`;
        if (Object.hasOwn(to, field)) compare(value, to[field], at);
        else if (value !== undefined && field !== '__typename') found.add(/^\w{1,64}$/.test(field) ? at : `${path}.?`);
      }
    }
  };
  compare(given, read, '');
  return found;
}

function fieldOf(value: unknown, path: readonly PropertyKey[]): unknown {
  let found = value;
  for (const field of path) found = isObject(found) ? found[String(field)] : undefined;
  return found;
}

function isBlank(value: unknown): boolean {
  return typeof value === 'string' && !NOT_BLANK.test(value);
}

/** Copies a value without nulls, because the canonical shape omits a field where GraphQL has null. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, field]) => (field === null ? [] : [[key, withoutNulls(field)]])),
  );
}
