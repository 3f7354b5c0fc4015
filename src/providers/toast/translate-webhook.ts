import { NotAuthentic } from '../../core/domain/errors.ts';
import type { Status } from '../../core/domain/lifecycle.ts';
import { StatusEvent } from '../../core/domain/order.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import type { WebhookAuth } from '../../core/domain/webhook-auth.ts';
import { parseJson } from '../parse-json.ts';
import { readShape } from '../read-shape.ts';
import { verifyHmac } from '../verify-hmac.ts';
import { AnyEvent, OfRestaurant, GuestOrderStatusUpdated, OrderUpdated, Signed } from './payloads.ts';
import type { Settings } from './payloads.ts';

export const webhookAuth = {
  kind: 'signature',
  header: 'toast-signature',
  settings: ['webhookSecret'],
} satisfies WebhookAuth;

/** Our status by Toast's. RECEIVED is every order's first status and, according to the documentation, not sent. */
const GUEST_STATUSES: ReadonlyMap<string, Status> = new Map([
  ['RECEIVED', 'received'],
  ['IN_PREPARATION', 'in_progress'],
  ['READY_FOR_PICKUP', 'ready'],
  ['CLOSED', 'completed'],
  ['VOIDED', 'cancelled'],
]);

/** Our status for each delivery state. PICKED_UP: the driver has the order. PENDING: no driver has taken it yet. */
const DELIVERY_STATES: ReadonlyMap<string, Status> = new Map([
  ['PICKED_UP', 'en_route'],
  ['IN_PROGRESS', 'en_route'],
  ['DELIVERED', 'completed'],
]);

const EVENTS: ReadonlyMap<string, (json: unknown, settings: Settings) => readonly StatusEvent[]> = new Map([
  ['guestOrderStatusUpdated', readGuestStatus],
  ['order_updated', readOrder],
  ['channel_order_updated', readOrder],
]);

const WANTED = 'an object with timestamp, eventType and details';

/**
 * Reads `guestOrderStatusUpdated`. Of `order_updated` and `channel_order_updated` it reads what the former lacks: that
 * nobody approved the order, that it was voided, and where its delivery is. All name the order only by Toast's GUID.
 * @throws NotAuthentic, Poison
 */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  const json = webhook.verified ? parseJson(webhook.body, WANTED) : parseVerified(webhook, settings);
  const readEvent = EVENTS.get(readShape(AnyEvent, json).eventType);
  // A subscription covers all restaurants of a client.
  if (readEvent === undefined || isElsewhere(readShape(OfRestaurant, json), settings)) return [];
  return readEvent(json, settings);
}

/**
 * Verifies the signature `base64(HMAC-SHA256(secret, body + timestamp))`. The timestamp is in the body, and is all that
 * is used of it before the signature is verified. https://doc.toasttab.com/doc/devguide/apiMessageSigning.html
 */
function parseVerified(webhook: Webhook, { webhookSecret }: Settings): unknown {
  let json: unknown;
  let timestamp: string;
  try {
    json = parseJson(webhook.body, WANTED);
    ({ timestamp } = Signed.parse(json));
  } catch {
    throw new NotAuthentic('the body holds no timestamp, with which Toast signs it', {
      cause: { code: 'signature_time_missing', field: 'timestamp' },
    });
  }
  let refusal: unknown;
  for (const secret of [webhookSecret].flat()) {
    try {
      const signed = [webhook.body, timestamp];
      verifyHmac(webhook, { header: webhookAuth.header, secret, signed, encoding: 'base64' });
      return json;
    } catch (error) {
      refusal = error;
    }
  }
  throw refusal;
}

function readGuestStatus(json: unknown, settings: Settings): readonly StatusEvent[] {
  const { orderGuid, guestOrderStatus, lastUpdated } = readShape(GuestOrderStatusUpdated, json).details;
  const status = GUEST_STATUSES.get(guestOrderStatus);
  if (status === undefined) return [];
  if (guestOrderStatus === 'CLOSED' && !settings.closedMeansCompleted) return [];
  return [eventOf(orderGuid, status, guestOrderStatus, lastUpdated)];
}

function readOrder(json: unknown): readonly StatusEvent[] {
  const { details, timestamp } = readShape(OrderUpdated, json);
  const { guid, voided, approvalStatus, deliveryInfo } = details.order;
  if (voided === true) return [eventOf(guid, 'cancelled', 'voided', timestamp)];
  if (approvalStatus === 'NOT_APPROVED') {
    const reason = 'The restaurant did not approve the order in time.';
    return [{ ...eventOf(guid, 'failed', approvalStatus, timestamp), reason }];
  }
  const deliveryState = deliveryInfo?.deliveryState ?? '';
  const status = DELIVERY_STATES.get(deliveryState);
  return status === undefined ? [] : [eventOf(guid, status, deliveryState, timestamp)];
}

function isElsewhere({ details }: OfRestaurant, { restaurantGuid }: Settings): boolean {
  return details.restaurantGuid.toLowerCase() !== restaurantGuid.toLowerCase();
}

/** @param time in Toast's format; a time that cannot be stored is left out, and the event kept */
function eventOf(providerOrderId: string, status: Status, nativeStatus: string, time: unknown): StatusEvent {
  const event = { providerOrderId, status, nativeStatus };
  // Times within Toast's orders look like 2024-04-01T15:10:59.817+0000.
  const occurredAt = typeof time === 'string' ? time.replace(/([+-]\d\d)(\d\d)$/, '$1:$2') : undefined;
  return StatusEvent.safeParse({ ...event, occurredAt }).data ?? StatusEvent.parse(event);
}
