import { z } from 'zod';
import { hasCredentials } from '../core/domain/has-credentials.ts';
import { Id } from '../core/domain/order.ts';

/**
 * Marks a setting that operators may see. Every text that has no mark is a secret, and is never shown. A number, a boolean
 * and one of a few words need no mark.
 */
export const SHOWN = { shown: true } as const;

/**
 * An http or https URL. It contains no user name or password, because fetch refuses such a URL. It is a secret, of which
 * operators see the origin, because its path may carry a token. `.meta(SHOWN)` shows a URL that never does.
 */
export const HttpUrl = z
  .url({ protocol: /^https?$/, error: 'is not a URL such as https://pos.example.com' })
  .refine((url) => !hasCredentials(url), { error: 'contains a user name or password: remove them' });

/** The base URL of an API, without a slash at its end. */
export const BaseUrl = HttpUrl.refine((url) => !/[?#]/.test(url), {
  error: 'contains a query (?) or a fragment (#): remove it',
})
  .transform((url) => url.replace(/(?<!\/)\/+$/, ''))
  .meta(SHOWN);

/** A base URL whose default is the vendor's production host. */
export function baseUrl(production: string) {
  return BaseUrl.prefault(production).meta({
    ...SHOWN,
    description: "The vendor's address. The default is production.",
  });
}

/** A token, secret or key. White space at either end is refused, because it is a mistake of copying. */
export const Secret = z
  .string()
  .min(1)
  .refine((text) => text === text.trim(), { error: 'begins or ends with white space' })
  .describe('A secret, as the vendor gives it.');

/**
 * Who delivers, and therefore gets the tip of a delivery: the restaurant's staff, the platform's couriers, or a
 * delivery service of the POS's vendor.
 */
export const DeliveredBy = z.enum(['restaurant', 'platform', 'vendor']);

/** Maps our ids of items and modifiers to the POS's ids. An id without an entry is sent unchanged. */
export const ItemMap = z
  .record(Id, Id)
  .default({})
  .meta({ ...SHOWN, description: "The POS's ids by our ids. An id that is missing here is sent unchanged." });

/** The POS's id for our id. */
export const posIdOf = (map: Readonly<Record<string, string>>, id: string): string => entryOf(map, id) ?? id;

/** Returns a map's entry for our id. For the id "constructor", a plain look-up would find a function. */
export function entryOf<Entry>(map: Readonly<Record<string, Entry>>, id: string): Entry | undefined {
  return Object.hasOwn(map, id) ? map[id] : undefined;
}
