import { z } from 'zod';
import { Id } from '../core/domain/order.ts';

/** What the settings of several POS have in common; each one's own schema puts them together. */

function hasCredentials(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && url.username + url.password !== '';
}

/** An http or https URL that fetch can call: it refuses user names and passwords in it. */
export const HttpUrl = z
  .url({ protocol: /^https?$/, error: 'is not an http or https URL' })
  .refine((url) => !hasCredentials(url), { error: 'holds a user name or password, which fetch refuses to send' });

/** An API's host; without a slash at its end, so that paths can follow. */
export const BaseUrl = HttpUrl.refine((url) => !/[?#]/.test(url), {
  error: 'holds a query or a fragment, behind which no path can follow',
}).transform((url) => url.replace(/\/+$/, ''));

/** The same for a vendor that has one for everybody. */
export function baseUrl(production: string) {
  return BaseUrl.prefault(production);
}

/** A token, secret or key: any text without a space at either end, which came from copying. */
export const Secret = z
  .string()
  .min(1)
  .refine((text) => text === text.trim(), { error: 'begins or ends with white space' });

/** The POS's own references of items and modifiers, by ours; one that is not in it is the POS's already. */
export const ItemMap = z.record(Id, Id).default({});

/** The entry of a map by our id; an object by itself would find `constructor`. */
export function entryOf<Entry>(map: Readonly<Record<string, Entry>>, id: string): Entry | undefined {
  return Object.hasOwn(map, id) ? map[id] : undefined;
}
