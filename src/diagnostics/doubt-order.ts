import { isDeepStrictEqual } from 'node:util';
import { checkSums } from '../core/domain/check-sums.ts';
import { flattenModifiers } from '../core/domain/flatten-modifiers.ts';
import { minorDigits, toDecimal } from '../core/domain/money.ts';
import { levelOf } from '../core/domain/price-level.ts';
import type { CanonicalOrder, Modifier } from '../core/domain/order.ts';
import { loadPhones, toE164 } from '../core/domain/to-e164.ts';

/** A remark on a field of an order that can be placed. `says` continues a sentence that starts with `path`. */
export type Remark = { path: string; says: string };

/** The least number of times by which an order exceeds others if its amounts are a hundred times too high. */
const OUTLIER = 25;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const YEAR_MS = 366 * 24 * HOUR_MS;
/** The longest time by which the platform's clock may be ahead. */
const AHEAD_MS = 10 * MINUTE_MS;
/** The longest time by which a wanted time may be before the order: it may be the beginning of a slot. */
const BEFORE_MS = 2 * HOUR_MS;
const OLD_YEARS = 2;

/** Names for programs: a UUID, a key in hexadecimal, an address, `prod_01H8…`, `BRG-00123`, a number, `undefined`. */
const ID_LIKE = [
  /^[\da-f]{8}-([\da-f]{4}-){3}[\da-f]{12}$/i,
  /^(?=.*\d)[\da-f]{20,}$/i,
  /^\w+:\/\//,
  /^[a-z]+_(?=\w*(\d[a-z]|\d{6}))\w{8,}$/i,
  /^(?=.*(\d{5}|[-_]0\d))[A-Z\d]+([-_][A-Z\d]+)+$/,
  /^\d{5,}$/,
  /^(undefined|null|NaN|\[object \w+\])$/,
];

/** Lists what is implausible in an order that can be placed. Prices may be missing, but mostly the mapper forgot them. */
export function doubtsOf(order: CanonicalOrder, now: Date): Remark[] {
  const unpriced = order.items.filter(({ unitPrice }) => unitPrice === undefined).length;
  const sums = checkSums(order);
  return [
    ...(unpriced === 0 ? [] : [{ path: 'items', says: `have no unitPrice: ${unpriced} of ${order.items.length}` }]),
    ...sums,
    ...doubtUnit(order),
    ...doubtTimes(order, now),
    ...doubtContact(order),
    ...doubtNames(order),
    ...doubtIds(order, sums.length + unpriced === 0 && order.money.subtotal > 0),
  ];
}

/**
 * Finds orders whose amounts are a hundred times too high, by the median of the others of their currency, of which there
 * must be two. Both the total and the highest price are compared, because a party's total may be high too.
 */
export function doubtTotals(orders: readonly CanonicalOrder[]): Remark[][] {
  return orders.map((order) => {
    const { total, currency } = order.money;
    const others = orders.filter((each) => each !== order && each.money.currency === currency);
    const timesOf = (amountOf: (order: CanonicalOrder) => number): number => {
      const amounts = others.map(amountOf).filter((amount) => amount > 0);
      const median = amounts.toSorted((a, b) => a - b)[Math.floor(amounts.length / 2)];
      return median === undefined || amounts.length < 2 ? 0 : Math.round(amountOf(order) / median);
    };
    const times = timesOf(({ money }) => money.total);
    if (!isWhole(order) || Math.min(times, timesOf(highestPrice)) < OUTLIER) return [];
    const says = `is ${inWords(total, currency)}, some ${times} times the median of the other orders`;
    return [{ path: 'money.total', says }];
  });
}

const inWords = (amount: number, currency: string): string => `${toDecimal(amount, currency)} ${currency}`;

type Line = CanonicalOrder['items'][number] | Modifier;
const linesOf = ({ items }: CanonicalOrder): Line[] => flattenModifiers<Line>(items);

/** All amounts but 0 that a person sets: no tax, and in a currency without cents only prices, since percentages vary. */
function amountsOf(order: CanonicalOrder): number[] {
  const { subtotal, discount = 0, tip, fee, total, currency } = order.money;
  const prices = linesOf(order).map(({ unitPrice = 0 }) => unitPrice);
  const sums = minorDigits(currency) === 2 ? [subtotal, discount, tip, fee, total] : [];
  return [...prices, ...sums].filter((amount) => amount !== 0);
}

/** Returns whether all amounts end in 00: a hundredfold does, but so does a menu with prices in whole euros. */
export const isWhole = (order: CanonicalOrder): boolean => amountsOf(order).every((amount) => amount % 100 === 0);
const highestPrice = (order: CanonicalOrder): number =>
  Math.max(...linesOf(order).map(({ unitPrice = 0 }) => unitPrice));

function doubtUnit(order: CanonicalOrder): Remark[] {
  const { currency } = order.money;
  const highest = highestPrice(order);
  const level = levelOf(highest, amountsOf(order), currency);
  const low = `has no item above ${inWords(highest, currency)}. Is it a hundred times too low? toMinorUnits reads 12 as 12.00`;
  if (level === 'low') return [{ path: 'money', says: low }];
  if (!isWhole(order) || level !== 'high') return [];
  const says = `has only prices that end in 00, and an item is ${inWords(highest, currency)}. Is it a hundred times too high? minorUnits reads minor units, and fromHundredths reads hundredths of any currency`;
  return [{ path: 'money', says }];
}

function doubtTimes({ placedAt, fulfillment: { requestedAt } }: CanonicalOrder, now: Date): Remark[] {
  const [placed, wanted] = [Date.parse(placedAt), Date.parse(requestedAt ?? placedAt)];
  const years = Math.floor((now.getTime() - placed) / YEAR_MS);
  const doubts: [applies: boolean, path: string, says: string][] = [
    [placed > now.getTime() + AHEAD_MS, 'placedAt', 'is in the future. Is its time zone right?'],
    [years >= OLD_YEARS, 'placedAt', `is ${years} years ago`],
    [wanted < placed - BEFORE_MS, 'fulfillment.requestedAt', 'is hours before placedAt. Is its time zone right?'],
    [wanted > placed + YEAR_MS, 'fulfillment.requestedAt', 'is more than a year after placedAt'],
  ];
  return doubts.flatMap(([applies, path, says]) => (applies ? [{ path, says }] : []));
}

function doubtContact({ member: { phone }, fulfillment: { destination } }: CanonicalOrder): Remark[] {
  const country = destination?.country?.toUpperCase();
  const isCallable = phone === undefined || (toE164(phone, undefined) !== undefined && !/(\d)\1{6}$/.test(phone));
  const isCountry = country === undefined || loadPhones().isSupportedCountry(country);
  return [
    ...(isCallable ? [] : [{ path: 'member.phone', says: 'is a number that no country has' }]),
    ...(isCountry ? [] : [{ path: 'fulfillment.destination.country', says: `is ${country}, which is no country` }]),
  ];
}

function doubtNames(order: CanonicalOrder): Remark[] {
  const isLikeId = (name: string): boolean => ID_LIKE.some((pattern) => pattern.test(name.trim()));
  const odd = linesOf(order).flatMap((line) => {
    const id = 'serviceItemId' in line ? line.serviceItemId : line.serviceModifierId;
    // A menu may have its names as ids, such as Cola and B12.
    return isLikeId(line.name) || (line.name === id && /[:/-]\w*\d|_\d|^\d{4,}$/.test(id)) ? [line.name] : [];
  });
  return [
    ...(odd.length === 0 ? [] : [{ path: 'items', says: `have a name like an id: ${odd[0]} (${odd.length} lines)` }]),
    ...(isLikeId(order.member.name) ? [{ path: 'member.name', says: 'is like an id' }] : []),
  ];
}

/** Two lines of one item are usual, if they differ or if the sums contain both. A weight in a name differs too. */
function doubtIds({ items }: CanonicalOrder, isSure: boolean): Remark[] {
  const wordsOf = (name: string): string => name.replaceAll(/[\d.,]/g, '').trim();
  const lines = items.map(({ quantity: _any, ...line }, nth) => ({ line, nth, words: wordsOf(line.name) }));
  return [...Map.groupBy(lines, ({ line }) => line.serviceItemId).values()].flatMap(([first, ...more]) =>
    more.flatMap(({ line, nth, words }, before) => {
      const renamed = `has the serviceItemId of items.${first?.nth}, but another name. Is it the id of a product with variants?`;
      if (words !== first?.words) return [{ path: `items.${nth}`, says: renamed }];
      const same =
        !isSure && [first, ...more.slice(0, before)].find((earlier) => isDeepStrictEqual(earlier.line, line));
      return same ? [{ path: `items.${nth}`, says: `equals items.${same.nth}. Was a line read twice?` }] : [];
    }),
  );
}
