import { absentable, baseUrl, Id, ItemMap, Secret, timeIfAny } from 'expediter-kit';
import { z } from 'zod';

/** One location's settings: Acme calls it a store. Strict, so that a mistyped name is an error. */
export const Settings = z.strictObject({
  storeId: z.string().regex(/^s-\d{1,10}$/, { error: 'is not a store id such as s-1042' }),
  /** OAuth client of our app at Acme. All its stores share the tokens. */
  clientId: Secret,
  clientSecret: Secret,
  /** Signs webhooks. */
  webhookSecret: Secret,
  /** Acme's sandbox and tests have another URL. */
  baseUrl: baseUrl('https://api.acme-pos.example'),
  /** Acme's SKUs, by our ids of items and modifiers. */
  itemMap: ItemMap,
});
export type Settings = z.infer<typeof Settings>;

/** "Tokens". `expires_in` is in seconds, up to a year. */
export const TokenGranted = z.object({
  access_token: z.string().min(1),
  expires_in: z.number().positive().max(31_536_000),
});

/** The answer to an order. */
export const OrderTaken = z.object({ id: Id });
export const Refused = z.object({
  error: z.object({ code: z.string().regex(/^[a-z_]{1,40}$/), skus: z.array(Id).optional().catch(undefined) }),
});

/** The answer to a void. */
export const Voided = z.object({ state: z.literal('VOIDED') });

export const AnyEvent = z.object({ event: z.string() });

export const OrderUpdated = z.object({
  storeId: z.string(),
  /** An unreadable time is left out; the status still counts. */
  at: timeIfAny,
  order: z.object({
    /** Acme's id. */
    id: Id,
    /** Our id, as sent. Tickets typed in at the till have none. */
    reference: absentable(Id),
    state: z.string(),
    /** Sent with VOIDED, for the guest. */
    reason: absentable(z.string()),
    cause: absentable(z.string()).catch(undefined),
    readyAt: timeIfAny,
  }),
});
