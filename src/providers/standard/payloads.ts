import { z } from 'zod';
import { Id, StatusEvent } from '../../core/domain/order.ts';
import { ReasonCode } from '../../core/domain/reason-code.ts';
import { absentable, asked, timeIfAny } from '../read-json.ts';
import { HttpUrl } from '../shared-settings.ts';
import { isSecret } from './sign.ts';

const Secret = z
  .string()
  .refine(isSecret, { error: 'is not a Standard Webhooks secret: whsec_ and the base64 of 24 to 64 bytes' });

/** One location's settings. Without a secret nothing is signed, and only the webhook's token proves the sender. */
export const Settings = z
  .strictObject({
    /** The URL that orders are posted to. */
    ordersUrl: HttpUrl,
    /** The URL that is asked for the status of an order whose webhooks are missing. */
    statusUrl: HttpUrl.optional(),
    /** The URL that cancels are posted to. Without it an order is cancelled by telephone. */
    cancelUrl: HttpUrl.optional(),
    /** The secret that signs orders and verifies webhooks. */
    secret: Secret.optional(),
    /** A second secret that is valid while the POS rotates. */
    previousSecret: Secret.optional(),
    /** Says aloud that there is no secret. */
    unsigned: z.literal(true, { error: 'is not true, the only value it has' }).optional(),
  })
  .refine(({ secret, previousSecret }) => secret !== undefined || previousSecret === undefined, {
    path: ['previousSecret'],
    error: 'stands alone: a secret is required beside it',
  })
  .refine(({ secret, unsigned }) => secret === undefined || unsigned === undefined, {
    path: ['unsigned'],
    error: 'stands beside a secret: leave one of them out',
  });
export type Settings = z.infer<typeof Settings>;

/** A secret that was forgotten is not taken for one that is not wanted. Locations from before this rule go on. */
export const NewSettings = Settings.refine(({ secret, unsigned }) => secret !== undefined || unsigned === true, {
  path: ['secret'],
  error: 'is missing, so nobody could tell who sends a webhook. To do without, write "unsigned": true',
});

/** The valid secrets, the current one first. */
export function secretsOf({ secret, previousSecret }: Settings): string[] {
  return [secret, previousSecret].filter((each) => each !== undefined);
}

const Time = z.iso.datetime({
  offset: true,
  error: (issue) =>
    issue.code === 'invalid_format'
      ? 'is a string, but no RFC 3339 time with offset such as 2026-01-31T18:30:00Z'
      : undefined,
});

/** The POS's answer to an order. */
export const OrderTaken = z.object({ providerOrderId: Id });

/** What a program can act on. A code that is none of ours is another reason, and no event is lost for one. */
const Codes = z.object({
  reasonCode: absentable(
    z.preprocess((code) => (typeof code === 'string' ? code.toLowerCase() : code), ReasonCode).catch('other'),
  ),
  /** As `serviceItemId` in the order posted. */
  itemIds: absentable(z.array(Id).max(100)).catch(undefined),
});

/** The POS's answer to an order that it does not take, or does not cancel. */
export const Refusal = Codes.extend({ reason: z.string().optional().catch(undefined) });

/** The POS's answer to a cancel. */
export const OrderCancelled = z.object({ cancelled: z.literal(true) });

export const AnyEvent = z.object({ eventType: z.string() });

export const OrderStatusEvent = z.object({
  order: Codes.extend({
    /** Our id, as `serviceOrderId` in the order posted. */
    thirdPartyReference: absentable(Id),
    /** The POS's own id. */
    id: absentable(Id),
    status: z.string(),
    reason: absentable(z.string()),
    occurredAt: absentable(Time),
    estimatedReadyAt: timeIfAny,
    estimatedDeliveryAt: timeIfAny,
    trackingUrl: StatusEvent.shape.trackingUrl,
  }),
});

/** What answers a question about an order names no other. */
export function ofOrder({
  serviceOrderId,
  providerOrderId,
}: {
  serviceOrderId: string;
  providerOrderId?: string | undefined;
}) {
  return z.object({
    order: z
      .object({
        thirdPartyReference: absentable(asked(serviceOrderId)),
        id: providerOrderId === undefined ? z.unknown().optional() : absentable(asked(providerOrderId)),
      })
      .optional(),
  });
}
