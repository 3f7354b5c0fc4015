import { flattenModifiers } from './flatten-modifiers.ts';
import type { CanonicalOrder, PARTS } from './order.ts';

/**
 * Digits after the decimal point, for each currency that does not have two. The source is ISO 4217, list one, as of
 * 2024-06-25. `Intl` is not used, because its digits come from the Unicode project, which follows habit (none for IQD)
 * and not ISO.
 */
const DIGITS: ReadonlyMap<string, number> = new Map([
  ...['BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'UYI', 'VND', 'VUV', 'XAF', 'XOF']
    .concat('XPF')
    .map((currency) => [currency, 0] as const),
  ...['BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND'].map((currency) => [currency, 3] as const),
  ...['CLF', 'UYW'].map((currency) => [currency, 4] as const),
]);

/** Returns the number of digits after the decimal point: 2 for EUR, 0 for JPY, 3 for KWD. */
export function minorDigits(currency: string): number {
  return DIGITS.get(currency) ?? 2;
}

/** Writes minor units as an exact decimal: 1290 EUR is "12.90", 1290 KWD is "1.290". */
export function toDecimal(minorUnits: number, currency: string): string {
  const digits = minorDigits(currency);
  const all = String(Math.abs(minorUnits)).padStart(digits + 1, '0');
  const whole = all.slice(0, all.length - digits);
  const rest = all.slice(all.length - digits);
  return `${minorUnits < 0 ? '-' : ''}${whole}${rest && `.${rest}`}`;
}

/** An item or a modifier, as far as its price needs. */
export type Priced = {
  quantity: number;
  unitPrice?: number | undefined;
  modifiers?: readonly Priced[] | undefined;
};

/** Adds up the items with their modifiers, in minor units. An item without a price is free. */
export function sumItems(items: readonly Priced[]): number {
  // An item is the parent of its modifiers, so each line comes with its quantity in the order.
  return flattenModifiers(items).reduce((sum, { unitPrice = 0, quantity }) => sum + unitPrice * quantity, 0);
}

type Parts = (typeof PARTS)[number];
type WithParts = Pick<CanonicalOrder, 'money' | Parts['list']>;

/** Lists an order's discounts above 0 for a ticket. If the order lists none, their sum is one "Discount". */
export function discountsOf(order: Pick<CanonicalOrder, 'money' | 'discounts'>) {
  return partsOf(order, { list: 'discounts', sum: 'discount', name: 'Discount' });
}

/** Lists an order's fees above 0 for a ticket. If the order lists none, their sum is one, with the given name. */
export function feesOf(order: Pick<CanonicalOrder, 'money' | 'fees'>, name = 'Fee') {
  return partsOf(order, { list: 'fees', sum: 'fee', name });
}

/** Lists an order's taxes above 0 that are added to its prices, as `taxIsOnTop` says. */
export function taxesOnTop(order: Pick<CanonicalOrder, 'items' | 'money' | 'taxes'>) {
  return taxIsOnTop(order) ? partsOf(order, { list: 'taxes', sum: 'tax', name: 'Tax' }) : [];
}

function partsOf(order: WithParts, { list, sum, name }: { list: Parts['list']; sum: Parts['sum']; name: string }) {
  const parts: readonly { name: string; amount: number }[] = order[list]?.length
    ? order[list]
    : [{ name, amount: order.money[sum] ?? 0 }];
  return parts.filter(({ amount }) => amount > 0);
}

/**
 * Returns whether the tax is added to the prices. If the platform does not say it (`pricesIncludeTax`), the sums tell:
 * the total less tip and fee is either what the goods cost with the tax, or without.
 */
export function taxIsOnTop({ items, money }: Pick<CanonicalOrder, 'items' | 'money'>): boolean {
  const { subtotal, discount = 0, tax, tip, fee, total, pricesIncludeTax } = money;
  if (pricesIncludeTax !== undefined) return !pricesIncludeTax;
  const paid = total - tip - fee + discount;
  // A POS adds up the items, so their sum says more than the subtotal.
  const goods = items.some(({ unitPrice }) => unitPrice === undefined) ? subtotal : sumItems(items);
  return goods !== paid && (goods + tax === paid || subtotal + tax === paid);
}
