import type { z } from 'zod';
import type { StatusEvent } from '../../core/domain/order.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import type { KitchenReport } from '../../core/domain/webhook.ts';
import type { WebhookAuth } from '../../core/domain/webhook-auth.ts';
import { parseJson, readShape } from '../read-json.ts';
import { refuseNameless } from '../refusals.ts';
import { kitchenReport } from '../kitchen-report.ts';
import { verifyHmac } from '../../core/domain/verify-hmac.ts';
import { eventsOfDelivery, eventsOfOrder } from './events-of-order.ts';
import { AnyEvent, DeliveryEvent, LocationEvent, OrderEvent, type Settings } from './payloads.ts';

export const webhookAuth = {
  kind: 'signature',
  header: 'x-hubrise-hmac-sha256',
  settings: ['clientSecret'],
} satisfies WebhookAuth;

const WANTED = 'an object with resource_type and event_type';

/**
 * The event's location is not checked, because a callback belongs to one connection, and a connection to one location.
 * @throws NotAuthentic, Poison
 */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  if (!webhook.verified) {
    const { header } = webhookAuth;
    verifyHmac(webhook, { header, secret: settings.clientSecret, signed: [webhook.body], encoding: 'hex' });
  }
  const json = parseJson(webhook.body, WANTED);
  const { resource_type: resource, event_type: type } = readShape(AnyEvent, json);
  if (type !== 'create' && type !== 'update') return [];
  if (resource === 'order') return readOrder(readShape(OrderEvent, json), json, settings);
  if (resource === 'delivery') return readDelivery(readShape(DeliveryEvent, json));
  return [];
}

function readOrder(
  { created_at: occurredAt, order_id, new_state: now, previous_state: before }: OrderEvent,
  json: unknown,
  settings: Settings,
): StatusEvent[] {
  const providerOrderId = order_id ?? now.id;
  const serviceOrderId = now.private_ref;
  const events = eventsOfOrder(now, before, { occurredAt, providerOrderId, serviceOrderId }, settings);
  const ids = { order_id, 'new_state.id': now.id, 'new_state.private_ref': serviceOrderId };
  if (events.length > 0) refuseNameless(ids, json);
  return events;
}

function readDelivery(event: z.infer<typeof DeliveryEvent>): StatusEvent[] {
  const { created_at: occurredAt, order_id, new_state: now, previous_state: before } = event;
  const providerOrderId = order_id ?? now.order_id;
  if (providerOrderId === undefined) return [];
  return eventsOfDelivery(now, before, { occurredAt, providerOrderId });
}

const STATES = { online: 'open', busy: 'busy', paused: 'closed' } as const;

/** Reads from an update of the location whether it takes orders. Its id is not checked, as above. @throws Poison */
export function readKitchen({ body, receivedAt }: Webhook, settings: Settings): KitchenReport | undefined {
  const said = LocationEvent.safeParse(parseJson(body, WANTED)).data?.new_state.order_acceptance;
  if (said === undefined) return undefined;
  const { mode, resume_at: until, extra_preparation_time: extraMinutes } = said;
  return kitchenReport({ state: STATES[mode], until, extraMinutes }, receivedAt, settings.pauseMinutes);
}
