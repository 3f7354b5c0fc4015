import { GiveUp, NeedsOperator } from '../../core/domain/errors.ts';
import type { KitchenOrder, OrderRef } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { callStandard } from './call-standard.ts';
import { OrderTaken, type Settings } from './payloads.ts';
import { readRefusal } from './read-refusal.ts';

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
