import { createRequire } from 'node:module';
import type { CountryCode } from 'libphonenumber-js/min';

type Library = typeof import('libphonenumber-js/min');

const require = createRequire(import.meta.url);
let library: Library | undefined;

/** Loads the number formats of all countries. This blocks the process for some 40 ms. */
export const loadPhones = (): Library => (library ??= require('libphonenumber-js/min') as Library);

/** Whether a number of this country, or one with + and the country's number, has more digits. */
export const isTooShort = (phone: string, country: string | undefined): boolean =>
  loadPhones().validatePhoneNumberLength(phone, country?.toUpperCase() as CountryCode | undefined) === 'TOO_SHORT';

/**
 * Reads a telephone number in any form.
 * @param country ISO 3166-1 alpha-2, for a national form
 * @returns undefined if it is not a number, or is in national form without a country
 */
export function toE164(phone: string, country: string | undefined): string | undefined {
  const number = loadPhones().parsePhoneNumberFromString(phone, country?.toUpperCase() as CountryCode | undefined);
  return number?.isValid() === true ? number.number : undefined;
}
