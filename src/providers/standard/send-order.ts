import type { CancelAnswer, PosContext } from '../../core/domain/provider.ts';
import { callPos, limitRate, type PosAnswer } from '../call-pos.ts';
import { hasOneOf, NOT_TAKEN, notItsOwn } from '../refusals.ts';
import {
  OrderCancelled,
  OrderTaken,
  Refusal,
  REFUSAL_FIELDS,
  SaysNo,
  signingSecrets,
  type Settings,
} from './payloads.ts';
import { sign } from '../../core/domain/standard-webhooks.ts';
import { GiveUp, NeedsOperator, TryAgain } from '../../core/domain/errors.ts';
import type { CanonicalOrder, KitchenOrder, OrderRef } from '../../core/domain/order.ts';

/** Our format defines no request limit, so requests wait only after a 429. */
const withinLimits = limitRate([]);

/**
 * Calls the POS about one order. The call is signed by Standard Webhooks if there is a secret.
 * @param about the id of the request. A repeat has the same id
 * @throws as `callPos` does
 */
export function callStandard(
  { settings, now, signal, fetch }: PosContext<Settings>,
  about: string,
  { url, body }: { url: string; body?: string },
): Promise<PosAnswer> {
  const id = headerSafe(about);
  const timestamp = String(Math.floor(now.getTime() / 1000));
  const secrets = signingSecrets(settings);
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

/** Percent-encodes an id for a header, unless it is visible ASCII without `%`. Two ids never get the same code. */
function headerSafe(id: string): string {
  return /^[!-$&-~]+$/.test(id) ? id : encodeURIComponent(id);
}

/** Whether an answer has no body. Some frameworks write an empty one as an empty object. */
const isBare = (json: unknown): boolean => Object.keys(json ?? {}).length === 0;

/** Maximum length of a reason, which the member reads. */
const REASON_MAX = 200;

/** @throws NeedsOperator on a 404 or 405 without a reason: then the URL in `setting` is wrong */
function readRefusal({ status: httpStatus, json }: PosAnswer, setting: keyof Settings) {
  const { reason, ...codes } = Refusal.safeParse(json).data ?? {};
  const text = reason?.replaceAll('\0', '').trim().slice(0, REASON_MAX).toWellFormed();
  if (!text && (httpStatus === 404 || httpStatus === 405)) {
    throw new NeedsOperator(`the POS answered ${httpStatus}: check ${setting}`, { httpStatus });
  }
  return { ...codes, httpStatus, ...(text && { reason: text }) };
}

/**
 * Posts the order to `ordersUrl` as JSON, in our own format. The POS deduplicates on `webhook-id` and
 * `Idempotency-Key`, which are the order's id in every attempt.
 *
 * - 2xx `{"providerOrderId"}`: taken, even without a usable id, because a webhook may bring the id later
 * - 409 with `{"providerOrderId"}`: the POS has this order already, which counts as taken
 * - 404 and 405 without a `reason`: `ordersUrl` is wrong, so an operator must correct it
 * - other 4xx with `{"reason"?, "reasonCode"?, "itemIds"?}`: the POS will never take the order
 * - 400, 409 and 422 without a body: the same as with one, if the POS named a ticket of the location within a day
 * - `{"success": false}` with a 2xx, and any other 409: perhaps taken
 * - any other 4xx: an operator is needed
 */
export async function createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef> {
  const body = JSON.stringify(order);
  const answer = await callStandard(context, order.serviceOrderId, { url: context.settings.ordersUrl, body });
  const { status } = answer;
  const json = answer.json ?? {};
  // guard: bare-is-believed
  const isBelieved = isBare(json) && [400, 409, 422].includes(status) && (await context.namedTicketLately?.()) === true;
  if (status < 300 || status === 409) {
    const taken: OrderRef = OrderTaken.safeParse(json).data ?? {};
    const isTaken =
      status === 409 ? isBelieved || taken.providerOrderId !== undefined : !SaysNo.safeParse(json).success;
    if (isTaken) return taken;
    throw new TryAgain(`the POS answered ${status}, but not that it took the order`, {
      sent: true,
      httpStatus: status,
    });
  }
  const refusal = readRefusal(answer, 'ordersUrl');
  const message = `the POS refused the order with ${status}`;
  if (!isBelieved && !hasOneOf(json, REFUSAL_FIELDS)) throw notItsOwn(message, status);
  throw new GiveUp(message, { reason: NOT_TAKEN, ...refusal });
}

/**
 * Posts the cancel to `cancelUrl`, if it is set. `webhook-id` and `Idempotency-Key` are `cancel:` followed by the
 * order's id, because the POS would take the order's id alone for a repeat of the order.
 *
 * - 2xx `{"cancelled": true}`: cancelled
 * - any other 2xx: a webhook will report the result
 * - 404 with a `reason`: the POS has no such order
 * - 404 and 405 without a `reason`: `cancelUrl` is wrong, and the ticket may exist
 * - other 4xx in our format or without a body: the POS can no longer cancel the order
 * - any other 4xx: an operator is needed
 */
export async function cancelOrder(
  { providerOrderId }: OrderRef,
  { serviceOrderId, cancelReason }: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<CancelAnswer | undefined> {
  const { cancelUrl: url } = context.settings;
  if (url === undefined) return undefined;
  const body = JSON.stringify({ serviceOrderId, providerOrderId, reason: cancelReason });
  const answer = await callStandard(context, `cancel:${serviceOrderId}`, { url, body });
  if (answer.status < 300) return OrderCancelled.safeParse(answer.json).success ? 'cancelled' : 'requested';
  const { status, json } = answer;
  const refusal = readRefusal(answer, 'cancelUrl');
  const message = `the POS refused to cancel the order with ${status}`;
  // A refused cancel is only told to a person, so an answer without a body is believed.
  if (!isBare(json) && !hasOneOf(json, REFUSAL_FIELDS)) throw notItsOwn(message, status);
  if (status === 404) return 'absent';
  throw new GiveUp(message, { reason: 'The restaurant can no longer cancel this order.', ...refusal });
}
