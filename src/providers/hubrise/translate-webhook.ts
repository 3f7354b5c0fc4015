import type { z } from 'zod';
import { Poison } from '../../core/domain/errors.ts';
import type { Status } from '../../core/domain/lifecycle.ts';
import { StatusEvent } from '../../core/domain/order.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import type { WebhookAuth } from '../../core/domain/webhook-auth.ts';
import { parseJson } from '../parse-json.ts';
import { readShape } from '../read-shape.ts';
import { verifyHmac } from '../verify-hmac.ts';
import { AnyEvent, DeliveryEvent, OrderEvent } from './payloads.ts';
import type { Settings } from './payloads.ts';

export const webhookAuth = {
  kind: 'signature',
  header: 'x-hubrise-hmac-sha256',
  settings: ['clientSecret'],
} satisfies WebhookAuth;

/**
 * Our status by HubRise's: https://www.hubrise.com/developers/api/orders#status
 * `new` is left out: the member knows it already.
 */
const ORDER_STATUSES: ReadonlyMap<string, Status> = new Map([
  ['received', 'received'],
  ['accepted', 'received'],
  ['in_preparation', 'in_progress'],
  ['awaiting_collection', 'ready'],
  ['awaiting_shipment', 'ready'],
  ['in_delivery', 'en_route'],
  ['completed', 'completed'],
  ['cancelled', 'cancelled'],
  ['rejected', 'failed'],
  ['delivery_failed', 'failed'],
]);

/**
 * Our status by the delivery's: https://www.hubrise.com/developers/api/deliveries#delivery-statuses
 * A courier's way to the restaurant is not about the food. After a cancelled delivery another courier may come.
 */
const DELIVERY_STATUSES: ReadonlyMap<string, Status> = new Map([
  ['dropoff_enroute', 'en_route'],
  ['dropoff_approaching', 'en_route'],
  ['dropoff_waiting', 'en_route'],
  ['delivered', 'completed'],
]);

type State = { status?: string | null | undefined };
type About = Pick<StatusEvent, 'serviceOrderId' | 'providerOrderId'> & { created_at?: unknown };

/**
 * Reads the event of a callback: https://www.hubrise.com/developers/api/callbacks
 *
 * - `order`: its status if it changed, and that of its delivery; either triggers this event
 * - `delivery`: the delivery's status, if the event names its order
 * - other resources and other event types: ignored
 *
 * A callback belongs to a connection, and a connection to one location, so the event need not name the location.
 * @throws NotAuthentic, Poison
 */
export function translateWebhook(
  webhook: Webhook,
  { clientSecret, closedMeansCompleted }: Settings,
): readonly StatusEvent[] {
  if (!webhook.verified) {
    const { header } = webhookAuth;
    verifyHmac(webhook, { header, secret: clientSecret, signed: [webhook.body], encoding: 'hex' });
  }
  const json = parseJson(webhook.body, 'an object with resource_type and event_type');
  const { resource_type: resource, event_type: type } = readShape(AnyEvent, json);
  if (type !== 'create' && type !== 'update') return [];
  if (resource === 'order') return readOrder(readShape(OrderEvent, json), closedMeansCompleted);
  if (resource === 'delivery') return readDelivery(readShape(DeliveryEvent, json));
  return [];
}

function readOrder(
  { created_at, order_id, new_state: now, previous_state: before }: OrderEvent,
  closedMeansCompleted: boolean,
): StatusEvent[] {
  const providerOrderId = order_id ?? now.id;
  const serviceOrderId = now.private_ref;
  const about = { created_at, providerOrderId, serviceOrderId };
  const events = [
    ...eventOf(now, before, ORDER_STATUSES, about).filter(
      ({ status }) => closedMeansCompleted || status !== 'completed',
    ),
    ...eventOf(now.delivery, before?.delivery, DELIVERY_STATUSES, about),
  ];
  if (events.length > 0 && providerOrderId === undefined && serviceOrderId === undefined) {
    throw new Poison('order_id, new_state.id and new_state.private_ref are all missing', {
      cause: { code: 'names_no_order', fields: ['order_id', 'new_state.id', 'new_state.private_ref'] },
    });
  }
  return events;
}

function readDelivery({ created_at, order_id, new_state: now, previous_state: before }: z.infer<typeof DeliveryEvent>) {
  const providerOrderId = order_id ?? now.order_id;
  if (providerOrderId === undefined) return [];
  return eventOf(now, before, DELIVERY_STATUSES, { created_at, providerOrderId });
}

/** Returns an event only if the status changed: an order is updated for many reasons. */
function eventOf(
  now: State | null | undefined,
  before: State | null | undefined,
  meanings: ReadonlyMap<string, Status>,
  { created_at, ...ids }: About,
): StatusEvent[] {
  const nativeStatus = now?.status ?? '';
  const status = meanings.get(nativeStatus);
  if (status === undefined || nativeStatus === before?.status) return [];
  const occurredAt = StatusEvent.shape.occurredAt.safeParse(created_at).data;
  return [{ status, nativeStatus, ...ids, ...(occurredAt !== undefined && { occurredAt }) }];
}
