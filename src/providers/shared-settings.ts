import { z } from 'zod';
import { Id } from '../core/domain/order.ts';
import type { KitchenReport } from '../core/domain/webhook.ts';
import { ifAny } from './read-json.ts';

function hasCredentials(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && url.username + url.password !== '';
}

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
  .url({ protocol: /^https?$/, error: 'is not an http or https URL' })
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

/** Minutes after which a state of the kitchen ends if nobody says when. They cover a meal service. */
const PAUSE_MINUTES = 240;

/** The setting for a POS that may say no end, such as a pause until further notice. */
export function pauseMinutes(minutes = PAUSE_MINUTES) {
  return z
    .int()
    .min(1)
    .max(1440)
    .default(minutes)
    .describe(
      'Minutes after which a closed or busy kitchen counts as open, if the POS says no end: the webhook that ends it may ' +
        'be lost.',
    );
}

/** The minutes that every order takes longer. Any other value becomes undefined, so that the rest still counts. */
export const minutesIfAny = ifAny(z.int().min(1).max(720));

type Said = { state: KitchenReport['state']; until?: string | undefined; extraMinutes?: number | undefined };

/**
 * Makes a report of what the POS says.
 * @param said a state whose end had passed when the webhook arrived is over: the kitchen is open
 * @param limitMinutes the setting `pauseMinutes`, for a state without an end
 */
export function kitchenReport(
  { state, until: end, extraMinutes }: Said,
  receivedAt: Date,
  limitMinutes = PAUSE_MINUTES,
): KitchenReport {
  const until = end === undefined ? new Date(receivedAt.getTime() + limitMinutes * 60_000) : new Date(end);
  if (state === 'open' || until <= receivedAt) return { state: 'open' };
  return state === 'closed' ? { state, until } : { state, until, extraMinutes };
}

/** Returns a map's entry for our id. For the id "constructor", a plain look-up would find a function. */
export function entryOf<Entry>(map: Readonly<Record<string, Entry>>, id: string): Entry | undefined {
  return Object.hasOwn(map, id) ? map[id] : undefined;
}
