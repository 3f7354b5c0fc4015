import { z } from 'zod';
import { Id } from '../core/domain/order.ts';

/** Settings that several POS systems share. */

function hasCredentials(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && url.username + url.password !== '';
}

/** An http or https URL without user name and password, which fetch refuses. */
export const HttpUrl = z
  .url({ protocol: /^https?$/, error: 'is not an http or https URL' })
  .refine((url) => !hasCredentials(url), { error: 'contains a user name or password: remove them' });

/** The base URL of an API, without a slash at its end. */
export const BaseUrl = HttpUrl.refine((url) => !/[?#]/.test(url), {
  error: 'contains a query (?) or a fragment (#): remove it',
}).transform((url) => url.replace(/(?<!\/)\/+$/, ''));

/** A base URL whose default is the vendor's production host. */
export function baseUrl(production: string) {
  return BaseUrl.prefault(production);
}

/** A token, secret or key. White space at either end is refused: it comes from copying. */
export const Secret = z
  .string()
  .min(1)
  .refine((text) => text === text.trim(), { error: 'begins or ends with white space' });

/**
 * Who delivers, and gets the tip of a delivery: the restaurant's staff, the platform's couriers, or a service of the
 * POS's vendor.
 */
export const DeliveredBy = z.enum(['restaurant', 'platform', 'vendor']);

/** The POS's ids of items and modifiers, by our ids. An id without an entry is sent unchanged. */
export const ItemMap = z.record(Id, Id).default({});

/** Returns the entry of a map by our id. A plain look-up would find `constructor`. */
export function entryOf<Entry>(map: Readonly<Record<string, Entry>>, id: string): Entry | undefined {
  return Object.hasOwn(map, id) ? map[id] : undefined;
}
