import { absentable, baseUrl, Id, ItemMap, Secret, timeIfAny } from 'expediter-kit';
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
  /** An unreadable time becomes undefined, so that the status still counts. */
  at: timeIfAny,
  order: z.object({
    /** Acme's id. */
    id: Id,
    /** Our id, as sent. Tickets that staff enter at the till have no reference. */
    reference: absentable(Id),
    state: z.string(),
    /** The reason of a VOIDED, in words for the guest. */
    reason: absentable(z.string()),
    cause: absentable(z.string()).catch(undefined),
    readyAt: timeIfAny,
  }),
});
