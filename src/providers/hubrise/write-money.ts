import { GiveUp } from '../../core/domain/errors.ts';
import { minorDigits, toDecimal } from '../../core/domain/money.ts';

/**
 * Writes an amount in HubRise's format: "9.00 EUR".
 *
 * It has two decimals in every currency. "A number with 2 decimal digits" is all that
 * https://www.hubrise.com/developers/api/general-concepts#monetary-values says, and HubRise's own library for amounts
 * (https://github.com/HubRise/ruby-money, which knows JPY and KWD) refuses 100, 100.5 and 100.100. Hence "900.00 JPY",
 * and "1.29 KWD" for 1290 fils. A third decimal is not documented. An amount that needs one is not rounded, since it
 * would no longer be what was paid.
 * @throws GiveUp for an amount that two decimals cannot hold
 */
export function writeMoney(minorUnits: number, currency: string): string {
  const digits = minorDigits(currency);
  const [whole = '', decimals = ''] = toDecimal(minorUnits, currency).split('.');
  if (/[^0]/.test(decimals.slice(2))) {
    throw new GiveUp(`an amount in ${currency} needs ${digits} decimals, and HubRise takes two`, {
      reason: 'The restaurant cannot take this exact amount.',
      reasonCode: 'technical',
    });
  }
  return `${whole}.${decimals.slice(0, 2).padEnd(2, '0')} ${currency}`;
}
