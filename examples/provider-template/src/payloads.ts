import { baseUrl, Id, idIfAny, ItemMap, Secret, textIfAny, timeIfAny } from 'expediter-kit';
import { z } from 'zod';

/** The settings of one location, which Acme calls a store. The schema is strict, so a mistyped field is an error. */
export const Settings = z.strictObject({
  storeId: z.string().regex(/^s-\d{1,10}$/, { error: 'is not a store id such as s-1042' }),
  /** The OAuth client of our app at Acme. All stores of the client share its tokens. */
  clientId: Secret,
  clientSecret: Secret,
  /** Acme signs webhooks with this secret. */
  webhookSecret: Secret,
  /** The API's URL. Acme's sandbox and our tests have another. */
  baseUrl: baseUrl('https://api.acme-pos.example'),
  /** Maps our ids of items and modifiers to Acme's SKUs. */
  itemMap: ItemMap,
});
export type Settings = z.infer<typeof Settings>;

/** "Tokens". `expires_in` is in seconds, up to a year. */
export const TokenGranted = z.object({
  access_token: z.string().min(1),
  expires_in: z.number().positive().max(31_536_000),
});

export const OrderTaken = z.object({ id: Id });
export const Refused = z.object({
  error: z.object({ code: z.string().regex(/^[a-z_]{1,40}$/), skus: z.array(Id).optional().catch(undefined) }),
});

export const Voided = z.object({ state: z.literal('VOIDED') });

export const AnyEvent = z.object({ event: z.string() });

export const OrderUpdated = z.object({
  storeId: z.string(),
  /** What cannot be read becomes undefined, so that the status still counts: this, and all fields that end in `IfAny`. */
  at: timeIfAny,
  order: z.object({
    /** Acme's id. */
    id: Id,
    /** Our id, as sent. Tickets that staff enter at the till have no reference. */
    reference: idIfAny,
    state: z.string(),
    /** The reason of a VOIDED, in words for the guest. */
    reason: textIfAny,
    cause: textIfAny,
    readyAt: timeIfAny,
  }),
});
