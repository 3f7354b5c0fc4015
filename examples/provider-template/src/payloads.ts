import { absentable, baseUrl, Id, ItemMap, Secret, timeIfAny } from 'expediter-kit';
import { z } from 'zod';

/** One location's: a store in Acme's words. Strict, so that a mistyped name is told and not passed over. */
export const Settings = z.strictObject({
  storeId: z.string().regex(/^s-\d{1,10}$/, { error: 'is not a store id such as s-1042' }),
  /** OAuth's, of our app at Acme: all stores that it may serve share its tokens. */
  clientId: Secret,
  clientSecret: Secret,
  /** Signs webhooks. */
  webhookSecret: Secret,
  /** Another one for Acme's sandbox, and in tests. */
  baseUrl: baseUrl('https://api.acme-pos.example'),
  /** Acme's SKUs, by our items' and modifiers' ids. */
  itemMap: ItemMap,
});
export type Settings = z.infer<typeof Settings>;

/** "Tokens". Seconds, up to a year: what is no number of seconds is no grant. */
export const TokenGranted = z.object({
  access_token: z.string().min(1),
  expires_in: z.number().positive().max(31_536_000),
});

/** What an order is answered with. */
export const OrderTaken = z.object({ id: Id });
export const Refused = z.object({
  error: z.object({ code: z.string().regex(/^[a-z_]{1,40}$/), skus: z.array(Id).optional().catch(undefined) }),
});

/** What a void is answered with. */
export const Voided = z.object({ state: z.literal('VOIDED') });

export const AnyEvent = z.object({ event: z.string() });

export const OrderUpdated = z.object({
  storeId: z.string(),
  /** A time that cannot be kept is no reason to lose the status. */
  at: timeIfAny,
  order: z.object({
    /** Acme's. */
    id: Id,
    /** Ours, as sent; tickets that were typed in at the till have none. */
    reference: absentable(Id),
    state: z.string(),
    /** Beside VOIDED, for the guest. */
    reason: absentable(z.string()),
    cause: absentable(z.string()).catch(undefined),
    readyAt: timeIfAny,
  }),
});
