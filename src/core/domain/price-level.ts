/** What an order's prices tell about the unit of its amounts. */
import { minorDigits } from './money.ts';

/**
 * What a euro is in other currencies, to one digit, as of November 2026. Currencies that lose much value each year are
 * left out: their amounts are compared only with those of other orders.
 */
const PER_EURO = new Map(
  (
    [
      [0.4, 'BHD JOD KWD OMR'],
      [1, 'AUD CAD CHF EUR GBP NZD SGD USD'],
      [5, 'AED BRL CNY GEL ILS MYR PEN PLN QAR RON SAR TND'],
      [10, 'DKK HKD NOK SEK'],
      [40, 'CZK MDL MKD MXN THB TWD UAH UYU ZAR'],
      [80, 'DOP INR PHP RUB'],
      [150, 'ISK JPY KES RSD'],
      [400, 'HUF LKR PKR'],
      [1_500, 'CLP CRC IQD KRW XAF XOF'],
      [5_000, 'COP'],
      [20_000, 'IDR VND'],
    ] as const
  ).flatMap(([rate, codes]) => codes.split(' ').map((code) => [code, rate] as const)),
);
/**
 * Euros. A dish of 3.00 costs 300 if it is a hundred times too high, and a fee of 0.10 is 10. A party's dish may cost as
 * much, but then some amount is lower.
 */
const HIGH = { price: 300, anyAmount: 10 };
/** Euros. A dish of 12 costs 0.12 if it is a hundred times too low. An order hardly ever has only cheaper items. */
const LOW = 0.2;

/**
 * Returns whether an order would be a hundred times too expensive, or too cheap.
 * @param highest the highest price of an item or a modifier, in minor units
 * @param amounts all amounts but 0, in minor units
 */
export function levelOf(highest: number, amounts: readonly number[], currency: string): 'high' | 'low' | undefined {
  const euro = (PER_EURO.get(currency) ?? Number.NaN) * 10 ** minorDigits(currency);
  if (highest > 0 && highest < LOW * euro) return 'low';
  return highest >= HIGH.price * euro && Math.min(...amounts) >= HIGH.anyAmount * euro ? 'high' : undefined;
}
