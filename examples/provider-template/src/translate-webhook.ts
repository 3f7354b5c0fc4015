import { describeIssues, parseJson, Poison, StatusEvent, verifyHmac } from 'expediter-kit';
import type { Status, Webhook } from 'expediter-kit';
import { AnyEvent, OrderUpdated, type Settings } from './payloads.ts';

/** "Order states". NEW says only that Acme has the order, which we know; other states may come one day. */
const MEANINGS: ReadonlyMap<string, Status> = new Map([
  ['ACCEPTED', 'received'],
  ['COOKING', 'in_progress'],
  ['READY', 'ready'],
  ['ON_THE_ROAD', 'en_route'],
  ['HANDED_OVER', 'completed'],
  ['FAULT', 'failed'],
  ['VOIDED', 'cancelled'],
]);

/**
 * Reads `order.updated` ("Webhooks"), signed with the hex HMAC-SHA256 of the raw body.
 * @throws NotAuthentic, Poison
 */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  if (!webhook.verified) {
    verifyHmac(webhook, {
      header: 'x-acme-signature',
      secret: settings.webhookSecret,
      signed: [webhook.body],
      encoding: 'hex',
    });
  }

  const json = parseJson(webhook.body, 'an object with event, storeId and order');
  const kind = AnyEvent.safeParse(json);
  if (!kind.success) throw new Poison(describeIssues(kind.error));
  if (kind.data.event !== 'order.updated') return [];

  const update = OrderUpdated.safeParse(json);
  if (!update.success) throw new Poison(describeIssues(update.error));
  const { storeId, at, order } = update.data;
  const status = MEANINGS.get(order.state);
  if (storeId !== settings.storeId || status === undefined) return [];

  const event = StatusEvent.safeParse({
    status,
    serviceOrderId: order.reference,
    providerOrderId: order.id,
    reason: order.reason,
    // A time that cannot be kept is no reason to lose the status.
    occurredAt: StatusEvent.shape.occurredAt.safeParse(at).data,
    nativeStatus: order.state,
  });
  if (!event.success) throw new Poison(describeIssues(event.error));
  return [event.data];
}
