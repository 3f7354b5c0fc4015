import { GiveUp, NeedsOperator } from '../../core/domain/errors.ts';
import type { KitchenOrder, OrderRef } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { callStandard } from './call-standard.ts';
import { OrderRefused, OrderTaken } from './payloads.ts';
import type { Settings } from './payloads.ts';

/** Characters of a reason. A member reads it: a sentence, not a page. */
const REASON_MAX = 200;

/**
 * Posts the order to `ordersUrl` as JSON, in our own format. `webhook-id` and `Idempotency-Key` are the order's id in
 * every attempt: the POS deduplicates on them.
 *
 * - 2xx `{"providerOrderId"}`: taken, also without a usable id, since the POS may name it in a webhook
 * - 409: the POS has this order already, which is as good
 * - 404 and 405 without a `reason`: `ordersUrl` is wrong, and every order would fail
 * - other 4xx, `{"reason"?}`: the POS will never take the order
 */
export async function createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef> {
  const body = JSON.stringify(order);
  const answer = await callStandard(context, order.serviceOrderId, { url: context.settings.ordersUrl, body });
  if (answer.status < 300 || answer.status === 409) return OrderTaken.safeParse(answer.json).data ?? {};
  const reason = reasonIn(answer.json);
  if (reason === undefined && (answer.status === 404 || answer.status === 405)) {
    throw new NeedsOperator(`the POS answered ${answer.status}: is ordersUrl right?`, { httpStatus: answer.status });
  }
  throw new GiveUp(`the POS refused the order with ${answer.status}`, {
    reason: reason ?? 'The restaurant could not take this order.',
    httpStatus: answer.status,
  });
}

function reasonIn(json: unknown): string | undefined {
  const reason = OrderRefused.safeParse(json).data?.reason.replaceAll('\0', '').trim();
  return reason ? reason.slice(0, REASON_MAX).toWellFormed() : undefined;
}
