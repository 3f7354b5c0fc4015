import type { CanonicalOrder } from '../../core/domain/order.ts';
import { splitName } from '../../core/domain/member-text.ts';
import { cutText } from '../order-texts.ts';

// HubRise documents only the length of private refs, 255. Names get the same; a longer note is no use in a kitchen.
export const NAME_MAX = 255;
export const NOTE_MAX = 2000;

/**
 * Writes the member with the order's address, as a guest's order and a customer list take it:
 * https://www.hubrise.com/developers/api/orders#customer and https://www.hubrise.com/developers/api/customers
 */
export function writeCustomer({ member, fulfillment }: CanonicalOrder): object {
  const { first, last } = splitName(member.name);
  const to = fulfillment.destination;
  return {
    first_name: cutText(first, NAME_MAX),
    last_name: last === '' ? undefined : cutText(last, NAME_MAX),
    email: member.email,
    phone: member.phone,
    address_1: to?.line1 && cutText(to.line1, NAME_MAX),
    address_2: to?.line2 && cutText(to.line2, NAME_MAX),
    postal_code: to?.postalCode && cutText(to.postalCode, NAME_MAX),
    city: to?.city && cutText(to.city, NAME_MAX),
    state: to?.region && cutText(to.region, NAME_MAX),
    country: countryCode(to?.country),
    latitude: to?.latitude?.toFixed(7),
    longitude: to?.longitude?.toFixed(7),
    delivery_notes: to?.instructions && cutText(to.instructions, NOTE_MAX),
  };
}

/** Returns an ISO 3166-1 alpha-2 code, all that HubRise takes. An address is found without its country's name. */
function countryCode(country: string | undefined): string | undefined {
  return country !== undefined && /^[A-Za-z]{2}$/.test(country) ? country.toUpperCase() : undefined;
}
