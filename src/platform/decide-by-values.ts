/** Decides by the values of one order what names leave open: which amounts add up, their unit, and times. */
import { checkSums } from '../core/domain/check-sums.ts';
import { isObject } from '../core/domain/json-text.ts';
import { minorDigits } from '../core/domain/money.ts';
import { levelOf } from '../core/domain/price-level.ts';
import type { Choice, Chosen } from './choose-fields.ts';
import type { Found, Step } from './order-in-schema.ts';

export type Decided = {
  /** Whether amounts were found that add up to the total. Undefined if the items are free. */
  addsUp?: boolean;
  /** Whether the subtotal is after the discounts, if there are any. */
  isReduced?: boolean;
  /** Whether prices include the tax, if there is any. */
  includesTax?: boolean;
};

const SUMS = ['unitPrice', 'total', 'subtotal', 'tax', 'fee', 'tip', 'discount'] as const;
const TIMES = ['placedAt', 'requestedAt', 'cancelledAt'];
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
/** Larger numbers are milliseconds since 1970. */
const SECONDS_MAX = 1e11;

/** @returns the values at the end of a way, of all entries of the lists on it */
const valuesAt = (data: unknown, steps: readonly Step[]): unknown[] =>
  steps.reduce<unknown[]>(
    (all, { name }) => all.flatMap((each) => (isObject(each) ? [each[name]] : [])).flat(2),
    [data],
  );
const isGiven = (value: unknown): boolean => value !== null && value !== undefined && value !== '';
/** An amount in ten-thousandths, so that decimals add up exactly. */
const exact = (value: unknown): number => (isGiven(value) ? Math.round(Number(value) * 10_000) : 0);
const sum = (amounts: readonly number[]): number => amounts.reduce((all, each) => all + each, 0);
const optionsOf = (choice: Choice | undefined): Found[] => (choice ? [choice.best, ...choice.close] : []);

type Option = { found: Found | undefined; value: number };
type Way = Readonly<Record<string, Option>>;

/** Whether amounts add up, as `platform check` decides it. */
function fits(way: Way): { isReduced: boolean; includesTax: boolean } | undefined {
  const [unitPrice = 0, total = 0, given = unitPrice, tax = 0, fee = 0, tip = 0, discount = 0] = SUMS.map(
    (name) => way[name]?.value,
  );
  const items = [{ quantity: 1, unitPrice }];
  const all = [false, true].flatMap((isReduced) => [true, false].map((includesTax) => ({ isReduced, includesTax })));
  return all.find(({ isReduced, includesTax }) => {
    const subtotal = isReduced ? given + discount : given;
    const money = { subtotal, discount, tax, tip, fee, total, currency: 'EUR', pricesIncludeTax: includesTax };
    return checkSums({ items, money }).length === 0;
  });
}

/** The candidates for each amount, with what they are in this order. */
function optionsIn({ fields, lists: { item: list, extra: extras } }: Chosen, data: unknown): [string, Option[]][] {
  const of = (name: string): Found | undefined => fields.get(name)?.best;
  const total = (found: Found | undefined, from = data, skip = 0): number =>
    found ? sum(valuesAt(from, found.steps.slice(skip)).map(exact)) : 0;
  /** The entries of a list below an object, each with its quantity. */
  const entries = (found: Found | undefined, from: unknown, count: string) =>
    (found ? valuesAt(from, found.steps.slice(found.skip)) : []).map((entry) => {
      const quantity = valuesAt(entry, of(count)?.steps.slice(found?.steps.length) ?? [])[0];
      return { entry, count: of(count) ? Number(quantity) : 1 };
    });
  const ordered = (price: Found): number =>
    sum(
      entries(list, data, 'quantity').map(({ entry: item, count }) => {
        const inner = entries(extras, item, 'extra.quantity');
        const more = inner.map(
          (extra) => extra.count * total(of('extra.unitPrice'), extra.entry, extras?.steps.length),
        );
        return count * (total(price, item, list?.steps.length) + sum(more));
      }),
    );
  const net = of('totalNet');
  return SUMS.map((name) => {
    const choice = (name === 'discount' && fields.get('discount.amount')) || fields.get(name);
    const options = optionsOf(choice).filter(({ tax }) => name !== 'total' || !net || tax === 'gross');
    const values = options.map((found) => ({
      found,
      value: name === 'unitPrice' ? ordered(found) : Math.abs(total(found)),
    }));
    // Without a field for it, the tax is what the total has more than the total without it.
    const tax = name === 'tax' && net ? total(of('total')) - total(net) : 0;
    return [name, values.length > 0 || name === 'subtotal' ? values : [{ found: undefined, value: tax }]];
  });
}

/** Chooses the likeliest amounts that add up. Others that would add up too stay close. */
function decideSums(chosen: Chosen, data: unknown): Decided {
  const options = optionsIn(chosen, data).filter(([, some]) => some.length > 0);
  const ways = options.reduce<{ way: Way; cost: number }[]>(
    (all, [name, some]) =>
      all.flatMap(({ way, cost }) => some.map((one, nth) => ({ way: { ...way, [name]: one }, cost: cost + nth }))),
    [{ way: {}, cost: 0 }],
  );
  const fitting = ways.toSorted((a, b) => a.cost - b.cost).flatMap(({ way }) => (fits(way) ? [way] : []));
  // No tax is added twice: if two totals differ by it, the higher one is with it.
  const same = fitting.filter((way) => SUMS.every((name) => name === 'total' || way[name] === fitting[0]?.[name]));
  const [best] = same.toSorted((a, b) => Number(b['total']?.value) - Number(a['total']?.value));
  const fit = best && fits(best);
  if (!best || !fit) return { addsUp: false };
  // Items without a price add up by chance.
  if (best['unitPrice']?.value === 0) return {};
  for (const [name, some] of options) {
    const choice = (name === 'discount' && chosen.fields.get('discount.amount')) || chosen.fields.get(name);
    const found = best[name]?.found;
    if (!choice || !found) continue;
    const others = some.filter((each) => each.found !== found && fits({ ...best, [name]: each }));
    Object.assign(choice, { best: found, close: others.map((each) => each.found) });
  }
  return {
    addsUp: true,
    ...(best['discount']?.value !== 0 && { isReduced: fit.isReduced }),
    ...(best['tax']?.value !== 0 && { includesTax: fit.includesTax }),
  };
}

/** A point shows decimals. Whole numbers are minor units only if the order would else be too dear: 12 may be 12.00. */
function unitOf(values: readonly unknown[], prices: readonly unknown[], currency: unknown): Found['unit'] {
  const amounts = values.map((each) => Math.abs(Number(each)));
  if (values.some((each) => String(each).includes('.')) || !amounts.every(Number.isInteger)) return 'decimal';
  const isRound = amounts.every((each) => each % 100 === 0);
  if (isRound || typeof currency !== 'string' || minorDigits(currency) !== 2) return undefined;
  const inHundredths = amounts.flatMap((each) => (each === 0 ? [] : [each * 100]));
  const highest = Math.max(...prices.map((each) => Number(each) * 100));
  return levelOf(highest, inHundredths, currency) === 'high' ? 'minor' : undefined;
}

/**
 * Corrects the choices by the values of an order.
 * @param data the order, with all fields that may be chosen
 */
export function decideByValues(chosen: Chosen, data: unknown): Decided {
  const { fields } = chosen;
  const valueOf = ({ steps }: Found): unknown => valuesAt(data, steps).find(isGiven);
  const decided = decideSums(chosen, data);
  for (const [name, choice] of fields) {
    if (SUMS.some((each) => each === name) || name === 'discount.amount') continue;
    const options = optionsOf(choice);
    const isCode = (found: Found): boolean => /^[A-Z]{2}$/.test(String(valueOf(found)));
    const best = options.find((found) => (name === 'country' ? isCode(found) : isGiven(valueOf(found)))) ?? choice.best;
    const value = valueOf(best);
    // The order was placed at a time whose name says so, if the cart's time is another.
    const isPlaced = name === 'placedAt' && /^(placed|ordered|submitted|purchased)/.test(best.words) && isGiven(value);
    const isOnly = options.every((found) => found === best || valueOf(found) !== value);
    const isSure = (isPlaced && isOnly) || (name === 'country' && isCode(best));
    Object.assign(choice, { best, close: isSure ? [] : options.filter((found) => found !== best) });
    if (!TIMES.includes(name) || !isGiven(value)) continue;
    const isNumber = Number.isFinite(Number(value));
    best.unit = isNumber
      ? Number(value) > SECONDS_MAX
        ? 'ms'
        : 's'
      : INSTANT.test(String(value))
        ? 'instant'
        : undefined;
  }
  const currency = fields.get('currency');
  const amounts = [...SUMS, 'totalNet', 'extra.unitPrice', 'discount.amount'].flatMap(
    (name) => fields.get(name)?.best ?? [],
  );
  const given = ({ steps }: Found): unknown[] => valuesAt(data, steps).filter(isGiven);
  const prices = optionsOf(fields.get('unitPrice')).slice(0, 1).flatMap(given);
  const unit = unitOf(amounts.flatMap(given), prices, currency && valueOf(currency.best));
  for (const best of amounts) {
    // A schema's Float or String may be a whole number of minor units.
    if (unit === 'minor' && best.unit === 'decimal') best.unit = undefined;
    else if (decided.addsUp) best.unit ??= unit;
  }
  return decided;
}
