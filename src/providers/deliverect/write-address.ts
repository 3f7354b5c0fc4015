import { GiveUp } from '../../core/domain/errors.ts';
import { type CanonicalOrder, NOT_BLANK } from '../../core/domain/order.ts';
import { splitStreet } from '../../core/domain/member-text.ts';

type Destination = NonNullable<CanonicalOrder['fulfillment']['destination']>;

/** What Deliverect requires beside the street, in words for the member. */
const REQUIRED = [
  ['postalCode', 'a postal code'],
  ['city', 'a city'],
  ['country', 'a country'],
] as const;

/**
 * Writes the address of a delivery. Street, number, postal code, city and country are each "required if delivery is done
 * by restaurant or a dispatch provider via Deliverect" (https://developers.deliverect.com/page/glossary-channel-orders),
 * which is every delivery of ours. The street must not repeat the number:
 * https://developers.deliverect.com/page/glossary-delivery-only-model
 * @throws GiveUp without one of them
 */
export function writeAddress(destination: Destination): Record<string, unknown> {
  const { line1, line2, city, postalCode, region, country, latitude, longitude, instructions } = destination;
  for (const [field, words] of REQUIRED) {
    if (!NOT_BLANK.test(destination[field] ?? '')) throw lacks(field, 'is missing', words);
  }
  const { street, houseNumber, rest } = readLine(line1, country);
  if (houseNumber === '') throw lacks('line1', 'has no house number that can be told', 'a house number');
  const extra = [rest, line2, region, instructions].filter(Boolean).join(', ');
  return {
    street,
    streetNumber: houseNumber,
    postalCode,
    city,
    country,
    ...(extra !== '' && { extraAddressInfo: extra }),
    ...(latitude !== undefined && longitude !== undefined && { coordinates: { latitude, longitude } }),
  };
}

const BARE_NUMBER = /^\d+ ?[a-zA-Z]?$/;

/**
 * Finds the house number in a line: at an end of its first part between commas, or at the beginning of a later one, as in
 * "Flat 4, 12 High Street". A bare number belongs to its neighbour: "Calle Mayor, 5", "14, rue de la Paix". The other parts
 * help to find the door. Elsewhere no number is guessed, since the courier would go there.
 */
function readLine(line: string, country: string | undefined): { street: string; houseNumber: string; rest: string } {
  const parts = line.split(',').map((part) => part.trim());
  for (const [nth, part] of parts.entries()) {
    const alone = splitStreet(part, country);
    const pair = parts.slice(nth, nth + 2);
    const isPair = alone.houseNumber === '' && pair.some((each) => BARE_NUMBER.test(each));
    const { street, houseNumber } = isPair ? splitStreet(pair.join(', '), country) : alone;
    if (houseNumber !== '' && (nth === 0 || part.startsWith(houseNumber))) {
      return { street, houseNumber, rest: parts.toSpliced(nth, isPair ? 2 : 1).join(', ') };
    }
  }
  return { street: line, houseNumber: '', rest: '' };
}

function lacks(field: string, problem: string, words: string): GiveUp {
  return new GiveUp(`fulfillment.destination.${field} ${problem}, and Deliverect requires ${words} for a delivery`, {
    reason: `The restaurant could not take this order: its address needs ${words}.`,
    reasonCode: 'invalid_address',
  });
}
