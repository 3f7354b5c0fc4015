import type { CancelAnswer, PosContext } from '../../core/domain/provider.ts';
import { callPos, limitRate, type PosAnswer } from '../call-pos.ts';
import { OrderCancelled, OrderTaken, Refusal, secretsOf, type Settings } from './payloads.ts';
import { sign } from './sign.ts';
import { GiveUp, NeedsOperator } from '../../core/domain/errors.ts';
import type { CanonicalOrder, KitchenOrder, OrderRef } from '../../core/domain/order.ts';

/** The limits that the POS states by 429. */
const withinLimits = limitRate([]);

/**
 * Calls the POS about one order, signed by Standard Webhooks where there is a secret.
 * @param about the request's id, the same for each repeat: the order's, or made of it
 * @throws as `callPos` does
 */
export function callStandard(
  { settings, now, signal, fetch }: PosContext<Settings>,
  about: string,
  { url, body }: { url: string; body?: string },
): Promise<PosAnswer> {
  const id = headerSafe(about);
  const timestamp = String(Math.floor(now.getTime() / 1000));
  const secrets = secretsOf(settings);
  const headers = {
    accept: 'application/json',
    // guard: pos-key
    ...(body !== undefined && { 'content-type': 'application/json', 'idempotency-key': id }),
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(secrets.length > 0 && { 'webhook-signature': sign(secrets, id, timestamp, body ?? '') }),
  };
  const method = body === undefined ? 'GET' : 'POST';
  return withinLimits(settings.ordersUrl, now, () =>
    callPos({ method, url, headers, signal, fetch, ...(body !== undefined && { body }) }),
  );
}

/**
 * Percent-encodes an id that is not visible ASCII, since headers carry no other. `%` is encoded to keep ids distinct.
 */
function headerSafe(id: string): string {
  return /^[!-$&-~]+$/.test(id) ? id : encodeURIComponent(id);
}

/** Characters of a reason. A member reads it: a sentence, not a page. */
const REASON_MAX = 200;

/** Why the POS refuses, as far as it says so. */
function readRefusal(json: unknown): Partial<Pick<GiveUp, 'reason' | 'reasonCode' | 'itemIds'>> {
  const { reason, ...codes } = Refusal.safeParse(json).data ?? {};
  const text = reason?.replaceAll('\0', '').trim().slice(0, REASON_MAX).toWellFormed();
  return { ...codes, ...(text && { reason: text }) };
}

/**
 * Posts the order to `ordersUrl` as JSON, in our own format. `webhook-id` and `Idempotency-Key` are the order's id in
 * every attempt: the POS deduplicates on them.
 *
 * - 2xx `{"providerOrderId"}`: taken, also without a usable id, since the POS may name it in a webhook
 * - 409: the POS has this order already, which is as good
 * - 404 and 405 without a `reason`: `ordersUrl` is wrong, and every order would fail
 * - other 4xx, `{"reason"?, "reasonCode"?, "itemIds"?}`: the POS will never take the order
 */
export async function createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef> {
  const body = JSON.stringify(order);
  const answer = await callStandard(context, order.serviceOrderId, { url: context.settings.ordersUrl, body });
  if (answer.status < 300 || answer.status === 409) return OrderTaken.safeParse(answer.json).data ?? {};
  const refusal = readRefusal(answer.json);
  if (refusal.reason === undefined && (answer.status === 404 || answer.status === 405)) {
    throw new NeedsOperator(`the POS answered ${answer.status}: is ordersUrl right?`, { httpStatus: answer.status });
  }
  throw new GiveUp(`the POS refused the order with ${answer.status}`, {
    ...refusal,
    reason: refusal.reason ?? 'The restaurant could not take this order.',
    httpStatus: answer.status,
  });
}

/**
 * Posts the cancel to `cancelUrl`, if there is one. `webhook-id` and `Idempotency-Key` are `cancel:` and the order's id:
 * with the order's alone, whoever deduplicates would take it for the order again.
 *
 * - 2xx `{"cancelled": true}`: it is cancelled
 * - any other 2xx: a webhook will say so
 * - 404 with a `reason`: the POS has no such order. Without one, `cancelUrl` is wrong, and every ticket may be there
 * - other 4xx: too late
 */
export async function cancelOrder(
  { providerOrderId }: OrderRef,
  { serviceOrderId, cancelReason }: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<CancelAnswer | undefined> {
  const { cancelUrl: url } = context.settings;
  if (url === undefined) return undefined;
  const body = JSON.stringify({ serviceOrderId, providerOrderId, reason: cancelReason });
  const { status: httpStatus, json } = await callStandard(context, `cancel:${serviceOrderId}`, { url, body });
  if (httpStatus < 300) return OrderCancelled.safeParse(json).success ? 'cancelled' : 'requested';
  const refusal = readRefusal(json);
  if (refusal.reason === undefined && (httpStatus === 404 || httpStatus === 405)) {
    throw new NeedsOperator(`the POS answered ${httpStatus}: is cancelUrl right?`, { httpStatus });
  }
  if (httpStatus === 404) return 'absent';
  throw new GiveUp(`the POS refused to cancel the order with ${httpStatus}`, {
    ...refusal,
    reason: refusal.reason ?? 'The restaurant can no longer cancel this order.',
    httpStatus,
  });
}
