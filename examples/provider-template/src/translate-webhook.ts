import { parseJson, readShape, StatusEvent, verifyHmac } from 'expediter-kit';
import type { ReasonCode, Status, Webhook, WebhookAuth } from 'expediter-kit';
import { AnyEvent, OrderUpdated, type Settings } from './payloads.ts';

export const webhookAuth = {
  kind: 'signature',
  header: 'x-acme-signature',
  settings: ['webhookSecret'],
} satisfies WebhookAuth;

/** "Order states". NEW is left out, because we know already that Acme has the order. Unknown states are ignored. */
const MEANINGS: ReadonlyMap<string, Status> = new Map([
  ['ACCEPTED', 'received'],
  ['COOKING', 'in_progress'],
  ['READY', 'ready'],
  ['ON_THE_ROAD', 'en_route'],
  ['HANDED_OVER', 'completed'],
  ['FAULT', 'failed'],
  ['VOIDED', 'cancelled'],
]);

/** Our reason codes for the causes of VOIDED ("Order states"). FAULT has no cause. */
const REASON_CODES: ReadonlyMap<string | undefined, ReasonCode> = new Map([
  ['SOLD_OUT', 'item_unavailable'],
  ['CLOSED', 'closed'],
  ['NO_TIME', 'too_busy'],
]);
const CODES: Partial<Record<Status, ReasonCode>> = { failed: 'technical', cancelled: 'restaurant_cancelled' };

/**
 * Reads `order.updated` ("Webhooks"), signed with the hex HMAC-SHA256 of the raw body.
 * @throws NotAuthentic, Poison
 */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  if (!webhook.verified) {
    verifyHmac(webhook, {
      header: webhookAuth.header,
      secret: settings.webhookSecret,
      signed: [webhook.body],
      encoding: 'hex',
    });
  }

  const json = parseJson(webhook.body, 'an object with event, storeId and order');
  if (readShape(AnyEvent, json).event !== 'order.updated') return [];
  const { storeId, at, order } = readShape(OrderUpdated, json);
  const status = MEANINGS.get(order.state);
  if (storeId !== settings.storeId || status === undefined) return [];

  const event = {
    status,
    serviceOrderId: order.reference,
    providerOrderId: order.id,
    reason: order.reason,
    reasonCode: REASON_CODES.get(order.cause) ?? CODES[status],
    estimatedReadyAt: order.readyAt,
    occurredAt: at,
    nativeStatus: order.state,
  };
  return [readShape(StatusEvent, event)];
}
