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

/** https://www.hubrise.com/developers/api/orders#status; `new` says nothing that a member does not know. */
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
 * https://www.hubrise.com/developers/api/deliveries#delivery-statuses. On the way to the restaurant says nothing about
 * the food, and a cancelled delivery nothing about the order: another courier may come.
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
 * Reads a callback's event: https://www.hubrise.com/developers/api/callbacks.
 *
 * - `order`: the status where it changed, and that of the delivery within it, each of which triggers this event
 * - `delivery`: the same about a delivery, where the event names its order
 * - other resources, and other event types: not for us
 *
 * A callback belongs to a connection, and a connection to one location, so nothing else in it needs to say which.
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

/** An order is updated for many reasons; only another status is an event. */
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
