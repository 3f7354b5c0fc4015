import { Poison } from '../../core/domain/errors.ts';
import { STATUSES } from '../../core/domain/lifecycle.ts';
import { StatusEvent, describeIssues } from '../../core/domain/order.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import { parseJson } from '../parse-json.ts';
import { AnyEvent, OrderStatusEvent, secretsOf } from './payloads.ts';
import type { Settings } from './payloads.ts';
import { verify } from './sign.ts';

/**
 * Reads `{"eventType": "order.status", "order": {"thirdPartyReference", "id", "status", "reason", "occurredAt"}}`.
 * Our statuses in any case: RECEIVED, IN_PROGRESS, READY, EN_ROUTE, COMPLETED, CANCELLED, FAILED. At least one of
 * `thirdPartyReference` (our id) and `id` (the POS's); `occurredAt` as RFC 3339 with offset.
 * Other event types and other statuses are not for us.
 * @throws NotAuthentic, Poison
 */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  const secrets = secretsOf(settings);
  if (secrets.length > 0 && !webhook.verified) verify(secrets, webhook);

  const json = parseJson(webhook.body, 'an object with eventType and order');
  const kind = AnyEvent.safeParse(json);
  if (!kind.success) throw new Poison(describeIssues(kind.error));
  if (kind.data.eventType !== 'order.status') return [];

  const result = OrderStatusEvent.safeParse(json);
  if (!result.success) throw new Poison(describeIssues(result.error));
  const { order } = result.data;
  const status = STATUSES.find((status) => status === order.status.toLowerCase());
  if (status === undefined) return [];

  const event = StatusEvent.safeParse({
    status,
    serviceOrderId: order.thirdPartyReference,
    providerOrderId: order.id,
    reason: order.reason,
    occurredAt: order.occurredAt,
    nativeStatus: order.status,
  });
  if (event.success) return [event.data];
  if (order.thirdPartyReference === undefined && order.id === undefined) {
    throw new Poison('order.thirdPartyReference and order.id are both missing: a string in either is required');
  }
  throw new Poison(describeIssues(event.error));
}
