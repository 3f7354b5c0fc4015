import { minorDigits } from '../../src/core/domain/money.ts';

/** Reads a price as people write it: `12.9` EUR and `12,90` EUR are 1290. @returns undefined if it is none */
export function minorUnitsOf(text: string, currency: string): number | undefined {
  const price = text.trim().replace(',', '.');
  if (!/^\d+(\.\d+)?$/.test(price)) return undefined;
  const units = Math.round(Number(price) * 10 ** minorDigits(currency));
  return Number.isSafeInteger(units) ? units : undefined;
}
