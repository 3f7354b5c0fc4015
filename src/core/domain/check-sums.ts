import { type Priced, sumItems, toDecimal } from './money.ts';
import { type CanonicalOrder, PARTS } from './order.ts';

/** What of an order has to add up. Amounts are minor units. */
export type Sums = { items: readonly Priced[] } & Pick<CanonicalOrder, 'money'> &
  Partial<Pick<CanonicalOrder, (typeof PARTS)[number]['list']>>;

/** An amount that does not fit the others. `says` continues a sentence that starts with `path`. */
export type WrongSum = { path: string; says: string };

/** The most parts that a sentence lists. */
const PARTS_MAX = 5;

/**
 * Checks all sums of an order, and names each amount that is off: items and the subtotal; discounts, fees and taxes and
 * their sums; the rates of taxes; the total. Items are not added up if an item has no price.
 */
export function checkSums(order: Sums): WrongSum[] {
  return [...checkSubtotal(order), ...checkParts(order), ...checkRates(order), ...checkTotal(order)];
}

function checkSubtotal({ items, money: { subtotal, discount = 0, tax, currency } }: Sums): WrongSum[] {
  const ordered = sumItems(items);
  if (ordered === subtotal || items.some(({ unitPrice }) => unitPrice === undefined)) return [];
  const whys: [sum: number, why: string][] = [
    [ordered + tax, 'The difference is the tax: only the subtotal includes it'],
    [ordered - tax, 'The difference is the tax: only the prices include it'],
    [ordered - discount, 'The difference is the discount: the subtotal must be before discounts'],
    [sumItems(items.map((item) => ({ ...item, quantity: 1 }))), 'Is unitPrice the price of the whole line?'],
    [sumItems(items.map((item) => ({ ...item, modifiers: [] }))), 'Does unitPrice include the modifiers?'],
    [ordered * 100, 'Is unitPrice or the subtotal in another unit?'],
    [ordered / 100, 'Is unitPrice or the subtotal in another unit?'],
  ];
  const why = whys.find(([sum]) => sum === subtotal)?.[1];
  const added = `but the items with their modifiers add up to ${inWords(ordered, currency)}`;
  const says = `is ${inWords(subtotal, currency)}, ${added}${why === undefined ? '' : `. ${why}`}`;
  return [{ path: 'money.subtotal', says }];
}

function checkParts({ money, ...order }: Sums): WrongSum[] {
  return PARTS.flatMap(({ list, sum }) => {
    const parts: readonly { name: string; amount: number; rate?: number | undefined }[] = order[list] ?? [];
    const given = money[sum] ?? 0;
    const added = parts.reduce((all, { amount }) => all + amount, 0);
    if (parts.length === 0 || added === given) return [];
    const named = parts.map(
      ({ name, amount, rate }) =>
        `${name} ${rate === undefined ? '' : `(${rate} %) `}${toDecimal(amount, money.currency)}`,
    );
    const which = `${named.slice(0, PARTS_MAX).join(', ')}${named.length > PARTS_MAX ? ', …' : ''}`;
    const says = `is ${inWords(given, money.currency)}, but ${list} add up to ${inWords(added, money.currency)}: ${which}`;
    return [{ path: `money.${sum}`, says }];
  });
}

/** A tax may be on some items only, so it may be lower than its rate, but not higher. Each line may be rounded. */
function checkRates({ items, money, taxes = [] }: Sums): WrongSum[] {
  return taxes.flatMap(({ amount, rate }, nth) => {
    if (rate === undefined) return [];
    const path = `taxes.${nth}`;
    if (rate > 100) return [{ path: `${path}.rate`, says: `is ${rate} percent` }];
    // A tax may be taken of another tax, and of fees and tips.
    const most = ((money.subtotal + money.fee + money.tip + money.tax - amount) * rate) / 100;
    if (amount <= most + items.length + 1) return [];
    const says = `is ${inWords(amount, money.currency)}, which is more than ${rate} % of all. Is the rate a percentage?`;
    return [{ path: `${path}.amount`, says }];
  });
}

function checkTotal({ money, fees = [] }: Sums): WrongSum[] {
  const { subtotal, discount = 0, tax, tip, fee, total, currency, pricesIncludeTax } = money;
  const due = subtotal - discount + tip + fee;
  const possible = [due, due + tax];
  const wanted = pricesIncludeTax === undefined ? possible : [pricesIncludeTax ? due : due + tax];
  if (wanted.includes(total)) return [];
  const missed = (amount: number): boolean => amount > 0 && wanted.some((sum) => Math.abs(total - sum) === amount);
  const part = (['tip', 'fee', 'discount'] as const).find((name) => missed(money[name] ?? 0));
  const named = fees.find(({ amount }) => missed(amount))?.name;
  const large = (['tip', 'fee'] as const).find((name) => money[name] > total);
  const whys: [applies: boolean, why: string][] = [
    [possible.includes(total), `Is money.pricesIncludeTax right? It is ${pricesIncludeTax}`],
    [part !== undefined, `The difference is money.${part}`],
    [named !== undefined, `The difference is the fee ${named}`],
    [total > due, 'Is a fee missing (money.fee)?'],
    [large !== undefined, `Is money.${large} in another unit?`],
  ];
  const why = whys.find(([applies]) => applies)?.[1] ?? 'Is a discount missing (money.discount)?';
  const taxed = tax > 0 ? `, ${inWords(due + tax, currency)} with the tax` : '';
  const less = discount > 0 ? ' less the discount' : '';
  const added = `subtotal${less}, tip and fee add up to ${inWords(due, currency)}${taxed}`;
  return [{ path: 'money.total', says: `is ${inWords(total, currency)}, and ${added}. ${why}` }];
}

const inWords = (amount: number, currency: string): string => `${toDecimal(amount, currency)} ${currency}`;
