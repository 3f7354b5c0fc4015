import { minorDigits, toDecimal } from '../../src/core/domain/money.ts';

/** Formats minor units for `locale` (the reader's by default): 1290 EUR is `€12.90`, 1290 JPY `¥1,290`. */
export function showMoney(minorUnits: number, currency: string, locale?: string): string {
  const digits = minorDigits(currency);
  return new Intl.NumberFormat(locale, {
    style: 'currency',
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(toDecimal(minorUnits, currency) as `${number}`);
}
