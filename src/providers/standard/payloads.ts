import { z } from 'zod';
import { Id, StatusEvent } from '../../core/domain/order.ts';
import { ReasonCode } from '../../core/domain/reason-code.ts';
import { absentable, idIfAny, requestedId, textIfAny, timeIfAny } from '../read-json.ts';
import { HttpUrl } from '../shared-settings.ts';
import { minutesIfAny } from '../kitchen-report.ts';
import { isSecret } from '../../core/domain/standard-webhooks.ts';

const Secret = z
  .string()
  .refine(isSecret, { error: 'is not a Standard Webhooks secret: whsec_ and the base64 of 24 to 64 bytes' });

/** One location's settings. Without a secret nothing is signed: only the token in the URL protects the webhook. */
export const Settings = z
  .strictObject({
    ordersUrl: HttpUrl.describe('Orders are posted to this URL.'),
    statusUrl: HttpUrl.optional().describe(
      "If no webhook reports an order's status, Expediter polls the status at this URL.",
    ),
    cancelUrl: HttpUrl.optional().describe(
      'Cancels are posted to this URL. Without it, a person cancels by telephone.',
    ),
    secret: Secret.optional()
      .meta({ generated: 'whsec_', requiredWithout: 'unsigned' })
      .describe('The secret that signs orders and verifies webhooks.'),
    previousSecret: Secret.optional().describe(
      'A second secret that is valid too. If the POS uses both secrets, or you are not sure, enter the other one here and ' +
        'keep the first one: each order is then signed with both.',
    ),
    unsigned: z
      .literal(true, { error: 'must be true or left out' })
      .optional()
      .describe('The POS cannot sign. Then only the token in the address proves who sends a webhook.'),
  })
  .refine(({ secret, previousSecret }) => secret !== undefined || previousSecret === undefined, {
    path: ['previousSecret'],
    error: 'needs secret: add secret, or remove previousSecret',
  })
  .refine(({ secret, unsigned }) => secret === undefined || unsigned === undefined, {
    path: ['unsigned'],
    error: 'contradicts secret: remove unsigned or secret',
  })
  .meta({ title: 'Standard API', description: 'A POS or a bridge that speaks our own format.' });
export type Settings = z.infer<typeof Settings>;

/** New locations must have a secret or declare `unsigned`. Existing locations continue to work without either. */
export const NewSettings = Settings.refine(({ secret, unsigned }) => secret !== undefined || unsigned === true, {
  path: ['secret'],
  error:
    'is missing, so only the token in the URL proves the sender. Add a secret, or set unsigned if the POS cannot sign',
});

/** Returns the valid secrets. The current secret comes first. */
export function signingSecrets({ secret, previousSecret }: Settings): string[] {
  return [secret, previousSecret].filter((each) => each !== undefined);
}

export const OrderTaken = z.object({ providerOrderId: Id });

/** An unknown code is read as `other`, so that no event is lost. */
const Codes = z.object({
  reasonCode: absentable(
    z.preprocess((code) => (typeof code === 'string' ? code.toLowerCase() : code), ReasonCode).catch('other'),
  ),
  /** The items that the reason is about: `serviceItemId`s of the posted order. */
  itemIds: absentable(z.array(Id).max(100)).catch(undefined),
});

export const Refusal = Codes.extend({ reason: z.string().optional().catch(undefined) });

/** A refusal in our format has one of these fields, whatever is in it. */
export const REFUSAL_FIELDS = Object.keys(Refusal.shape);

/** Some frameworks answer every failure so, with 200. */
export const SaysNo = z.object({ success: z.literal(false) });

export const OrderCancelled = z.object({ cancelled: z.literal(true) });

export const AnyEvent = z.object({ eventType: z.string() });

export const OrderStatusEvent = z.object({
  order: Codes.extend({
    /** Our id: `serviceOrderId` of the posted order. */
    thirdPartyReference: idIfAny,
    /** The POS's own id. */
    id: idIfAny,
    status: z.string(),
    reason: textIfAny,
    occurredAt: timeIfAny,
    estimatedReadyAt: timeIfAny,
    estimatedDeliveryAt: timeIfAny,
    trackingUrl: StatusEvent.shape.trackingUrl,
  }),
});

export const KitchenStatusEvent = z.object({
  kitchen: z.object({
    state: z.string(),
    /** When the kitchen is open again. */
    until: timeIfAny,
    extraMinutes: minutesIfAny,
  }),
});

/** Schema of an answer about an order. It refuses an answer that names another order. */
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
        thirdPartyReference: absentable(requestedId(serviceOrderId)),
        id: providerOrderId === undefined ? z.unknown().optional() : absentable(requestedId(providerOrderId)),
      })
      .optional(),
  });
}
