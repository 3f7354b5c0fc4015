import { toE164 } from '../core/domain/to-e164.ts';

/**
 * Reads a telephone number as people of a country write it: "030 12345678" in DE is "+493012345678". The country of the
 * destination is looked at without this; that of a restaurant, for one, only a mapper knows.
 * @param country ISO 3166-1 alpha-2
 * @returns E.164, or the text as it was where it is no number: it is left out then
 */
export function phoneInCountry(phone: string, country: string): string {
  return toE164(phone, country) ?? phone;
}
