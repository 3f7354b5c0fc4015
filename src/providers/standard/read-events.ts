import { NeedsOperator } from '../../core/domain/errors.ts';
import { STATUSES } from '../../core/domain/lifecycle.ts';
import { verify } from '../../core/domain/standard-webhooks.ts';
import type { CanonicalOrder, OrderRef, StatusEvent } from '../../core/domain/order.ts';
import type { KitchenReport } from '../../core/domain/webhook.ts';
import { parseJson, readShape, readState } from '../read-json.ts';
import { refuseNameless } from '../refusals.ts';
import { kitchenReport } from '../kitchen-report.ts';
import { AnyEvent, KitchenStatusEvent, ofOrder, OrderStatusEvent, signingSecrets, type Settings } from './payloads.ts';
import type { PosContext, Webhook } from '../../core/domain/provider.ts';
import { callStandard } from './send-order.ts';

/**
 * Reads `{"eventType": "order.status", "order": {"thirdPartyReference", "id", "status", "reason", "reasonCode",
 * "itemIds", "occurredAt", "estimatedReadyAt", "estimatedDeliveryAt", "trackingUrl"}}`.
 * `status` is one of our statuses, in upper or lower case. `thirdPartyReference` (our order id) or `id` (the POS's) is
 * required. `occurredAt` is RFC 3339 with offset. Other event types and other statuses are ignored.
 * @throws Poison
 */
function readEvent(json: unknown): readonly StatusEvent[] {
  if (readShape(AnyEvent, json).eventType !== 'order.status') return [];
  const { thirdPartyReference, id, status: nativeStatus, ...said } = readShape(OrderStatusEvent, json).order;
  const status = STATUSES.find((status) => status === nativeStatus.toLowerCase());
  if (status === undefined) return [];

  refuseNameless({ 'order.thirdPartyReference': thirdPartyReference, 'order.id': id }, json);
  return [{ ...said, status, serviceOrderId: thirdPartyReference, providerOrderId: id, nativeStatus }];
}

/**
 * Polls `statusUrl`, if it is set. The answer has the format of a webhook. 404 means that the POS has no such order.
 * @throws as `callPos` does; TryAgain if the answer is unreadable or about another order; NeedsOperator if
 *   `statusUrl` is wrong
 */
export async function readStatus(
  { providerOrderId }: OrderRef,
  { serviceOrderId }: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<readonly StatusEvent[] | undefined> {
  const { statusUrl } = context.settings;
  if (statusUrl === undefined) return undefined;
  const url = new URL(statusUrl);
  url.searchParams.set('thirdPartyReference', serviceOrderId);
  if (providerOrderId !== undefined) url.searchParams.set('id', providerOrderId);

  const answer = await callStandard(context, serviceOrderId, { url: url.href });
  if (answer.status === 404) return [];
  if (answer.status >= 300) {
    throw new NeedsOperator(`the POS answered ${answer.status}: check statusUrl`, { httpStatus: answer.status });
  }
  return readState(answer, (json) => {
    readShape(ofOrder({ serviceOrderId, providerOrderId }), json);
    return readEvent(json);
  });
}

const WANTED = 'an object with eventType and order';

/** Verifies the signature if there is a secret, and reads the event. @throws NotAuthentic, Poison */
export function translateWebhook(webhook: Webhook, settings: Settings): readonly StatusEvent[] {
  const secrets = signingSecrets(settings);
  if (secrets.length > 0 && !webhook.verified) verify(secrets, webhook);
  return readEvent(parseJson(webhook.body, WANTED));
}

export const KITCHEN_STATES = ['open', 'busy', 'closed'] as const;

/** Reads `{"eventType": "kitchen.status", "kitchen": {"state", "until", "extraMinutes"}}`. @throws Poison */
export function readKitchen({ body, receivedAt }: Webhook): KitchenReport | undefined {
  const json = parseJson(body, WANTED);
  if (readShape(AnyEvent, json).eventType !== 'kitchen.status') return undefined;
  const { state: native, ...said } = readShape(KitchenStatusEvent, json).kitchen;
  const state = KITCHEN_STATES.find((state) => state === native.toLowerCase());
  return state && kitchenReport({ ...said, state }, receivedAt);
}
