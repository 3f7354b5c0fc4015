import { NotAuthentic } from '../../core/domain/errors.ts';
import type { Status } from '../../core/domain/lifecycle.ts';
import type { StatusEvent } from '../../core/domain/order.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import type { KitchenReport } from '../../core/domain/webhook.ts';
import type { WebhookAuth } from '../../core/domain/webhook-auth.ts';
import { parseJson, readShape } from '../read-json.ts';
import { kitchenReport } from '../kitchen-report.ts';
import { verifyHmac } from '../../core/domain/verify-hmac.ts';
import { eventsOfOrder } from './read-status.ts';
import {
  AnyEvent,
  AvailabilityChanged,
  GuestOrderStatusUpdated,
  OfRestaurant,
  OrderUpdated,
  type Settings,
  Signed,
} from './payloads.ts';

export const webhookAuth = {
  kind: 'signature',
  header: 'toast-signature',
  settings: ['webhookSecret'],
} satisfies WebhookAuth;

/** Our status for each guest order status. Toast documents that it does not send RECEIVED, every order's first. */
const GUEST_STATUSES: ReadonlyMap<string, Status> = new Map([
  ['RECEIVED', 'received'],
  ['IN_PREPARATION', 'in_progress'],
  ['READY_FOR_PICKUP', 'ready'],
  ['CLOSED', 'completed'],
  ['VOIDED', 'cancelled'],
]);

const EVENTS: ReadonlyMap<string, (json: unknown, settings: Settings) => readonly StatusEvent[]> = new Map([
  ['guestOrderStatusUpdated', readGuestStatus],
  ['order_updated', readOrder],
  ['channel_order_updated', readOrder],
]);

const WANTED = 'an object with timestamp, eventType and details';

/** The events contain only Toast's GUID of the order. @throws NotAuthentic, Poison */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  const json = webhook.verified ? parseJson(webhook.body, WANTED) : parseVerified(webhook, settings);
  const readEvent = EVENTS.get(readShape(AnyEvent, json).eventType);
  // A subscription covers all restaurants of a client.
  if (readEvent === undefined || isElsewhere(readShape(OfRestaurant, json), settings)) return [];
  return readEvent(json, settings);
}

/**
 * Verifies the signature `base64(HMAC-SHA256(secret, body + timestamp))`. The timestamp is in the body, and is the only
 * field that is used before the verification. https://doc.toasttab.com/doc/devguide/apiMessageSigning.html
 */
function parseVerified(webhook: Webhook, { webhookSecret }: Settings): unknown {
  let json: unknown;
  let timestamp: string;
  try {
    json = parseJson(webhook.body, WANTED);
    ({ timestamp } = Signed.parse(json));
  } catch {
    throw new NotAuthentic('the body has no timestamp, which the signature covers', {
      cause: { code: 'signature_time_missing', field: 'timestamp' },
    });
  }
  const signed = [webhook.body, timestamp];
  verifyHmac(webhook, { header: webhookAuth.header, secret: webhookSecret, signed, encoding: 'base64' });
  return json;
}

function readGuestStatus(json: unknown, settings: Settings): readonly StatusEvent[] {
  const {
    orderGuid,
    guestOrderStatus: nativeStatus,
    lastUpdated: occurredAt,
  } = readShape(GuestOrderStatusUpdated, json).details;
  const status = GUEST_STATUSES.get(nativeStatus);
  if (status === undefined) return [];
  if (nativeStatus === 'CLOSED' && !settings.closedMeansCompleted) return [];
  const reasonCode = status === 'cancelled' ? 'restaurant_cancelled' : undefined;
  return [{ status, nativeStatus, reasonCode, providerOrderId: orderGuid, occurredAt }];
}

function readOrder(json: unknown, settings: Settings): readonly StatusEvent[] {
  const { details, timestamp: occurredAt } = readShape(OrderUpdated, json);
  return eventsOfOrder(details.order, { providerOrderId: details.order.guid, occurredAt }, settings);
}

/** @throws Poison */
export function readKitchen({ body, receivedAt }: Webhook, settings: Settings): KitchenReport | undefined {
  // Most webhooks are orders of other restaurants, of up to 600 kB, which need not be parsed again.
  if (!body.includes('_availability')) return undefined;
  const event = AvailabilityChanged.safeParse(parseJson(body, WANTED)).data;
  if (event === undefined || isElsewhere(event, settings)) return undefined;
  const state = event.details.status === 'ONLINE' ? 'open' : 'closed';
  return kitchenReport({ state }, receivedAt, settings.pauseMinutes);
}

function isElsewhere({ details }: OfRestaurant, { restaurantGuid }: Settings): boolean {
  return details.restaurantGuid.toLowerCase() !== restaurantGuid.toLowerCase();
}
