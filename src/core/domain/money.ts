import { flattenModifiers } from './flatten-modifiers.ts';
import type { CanonicalOrder, Modifier } from './order.ts';

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

/** Adds up the items with their modifiers, in minor units. An item without a price is free. */
export function sumItems(items: CanonicalOrder['items']): number {
  // An item is the parent of its modifiers, so each line comes with its quantity in the order.
  const lines = flattenModifiers<CanonicalOrder['items'][number] | Modifier>(items);
  return lines.reduce((sum, { unitPrice = 0, quantity }) => sum + unitPrice * quantity, 0);
}

/** Lists an order's discounts above 0 for a ticket. If the order lists none, their sum is one "Discount". */
export function discountsOf({ money, discounts }: Pick<CanonicalOrder, 'money' | 'discounts'>) {
  const named = discounts?.length ? discounts : [{ name: 'Discount', amount: money.discount ?? 0 }];
  return named.filter(({ amount }) => amount > 0);
}
