import { parsePhoneNumberFromString, type CountryCode } from 'libphonenumber-js/min';

/**
 * Reads a telephone number in any form.
 * @param country ISO 3166-1 alpha-2, for a national form
 * @returns undefined if it is no number, or in national form without a country
 */
export function toE164(phone: string, country: string | undefined): string | undefined {
  const number = parsePhoneNumberFromString(phone, country?.toUpperCase() as CountryCode | undefined);
  return number?.isValid() === true ? number.number : undefined;
}
