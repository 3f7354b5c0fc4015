import { minorDigits } from '../core/domain/money.ts';
import { MappingError } from './mapping-error.ts';

/** How far a number of JSON may be off its decimal, as 0.1 + 0.2 is. */
const FLOAT_ERROR = 1e-6;

/**
 * Reads a decimal as minor units: "12.90" EUR is 1290, "1290" JPY is 1290, "1.290" KWD is 1290. Never rounds.
 * @param field names it in an error
 * @throws MappingError
 */
export function toMinorUnits(amount: string | number, currency: string, field?: string): number {
  if (!/^[A-Z]{3}$/.test(currency)) throw new MappingError('currency_unreadable', field);
  const digits = minorDigits(currency);
  const [, sign, whole = '', rest = ''] = /^([+-]?)(\d*)(?:\.(\d*))?$/.exec(asText(amount, digits)) ?? [];
  if (sign === undefined || whole + rest === '') throw new MappingError('amount_unreadable', field);
  if (/[1-9]/.test(rest.slice(digits))) throw new MappingError('amount_too_exact', field);
  const minorUnits = Number(whole + rest.slice(0, digits).padEnd(digits, '0'));
  if (!Number.isSafeInteger(minorUnits)) throw new MappingError('amount_too_large', field);
  return sign === '-' && minorUnits > 0 ? -minorUnits : minorUnits;
}

function asText(amount: string | number, digits: number): string {
  if (typeof amount === 'string') return amount.trim();
  const rounded = amount.toFixed(digits);
  return Math.abs(Number(rounded) - amount) < FLOAT_ERROR ? rounded : String(amount);
}
