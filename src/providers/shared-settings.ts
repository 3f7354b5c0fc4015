import { z } from 'zod';
import { Id } from '../core/domain/order.ts';

/** Parts that the settings of several POS systems share. */

function hasCredentials(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && url.username + url.password !== '';
}

/** An http or https URL without user name and password: fetch refuses those. */
export const HttpUrl = z
  .url({ protocol: /^https?$/, error: 'is not an http or https URL' })
  .refine((url) => !hasCredentials(url), { error: 'holds a user name or password, which fetch refuses to send' });

/** The base URL of an API, without a slash at its end, so that paths can follow. */
export const BaseUrl = HttpUrl.refine((url) => !/[?#]/.test(url), {
  error: 'holds a query or a fragment, behind which no path can follow',
}).transform((url) => url.replace(/(?<!\/)\/+$/, ''));

/** A base URL with a default, for a vendor with one production host for everybody. */
export function baseUrl(production: string) {
  return BaseUrl.prefault(production);
}

/** A token, secret or key. White space at either end is refused: it comes from copying. */
export const Secret = z
  .string()
  .min(1)
  .refine((text) => text === text.trim(), { error: 'begins or ends with white space' });

/**
 * Who delivers: the restaurant's staff, the ordering platform's couriers, or a service of the POS's vendor. The tip of a
 * delivery is theirs.
 */
export const DeliveredBy = z.enum(['restaurant', 'platform', 'vendor']);

/** The POS's own ids of items and modifiers, by our ids. An id without an entry is sent as it is. */
export const ItemMap = z.record(Id, Id).default({});

/** Returns the entry of a map by our id. A plain look-up would find `constructor`. */
export function entryOf<Entry>(map: Readonly<Record<string, Entry>>, id: string): Entry | undefined {
  return Object.hasOwn(map, id) ? map[id] : undefined;
}
