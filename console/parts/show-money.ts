import { minorDigits, toDecimal } from '../../src/core/domain/money.ts';

/** Creating a format takes longer than formatting a hundred sums. */
const formats = new Map<string, Intl.NumberFormat>();

/** Formats minor units for `locale` (the reader's by default): 1290 EUR is `€12.90`, 1290 JPY `¥1,290`. */
export function showMoney(minorUnits: number, currency: string, locale?: string): string {
  const key = `${currency} ${locale ?? ''}`;
  const format = formats.get(key) ?? formatOf(currency, locale);
  formats.set(key, format);
  return format.format(toDecimal(minorUnits, currency) as `${number}`);
}

function formatOf(currency: string, locale: string | undefined): Intl.NumberFormat {
  const digits = minorDigits(currency);
  return new Intl.NumberFormat(locale, {
    style: 'currency',
    currency,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}
