import { GiveUp, NeedsOperator } from '../../core/domain/errors.ts';
import type { CanonicalOrder, OrderRef } from '../../core/domain/order.ts';
import type { CancelAnswer, PosContext } from '../../core/domain/provider.ts';
import { callStandard } from './call-standard.ts';
import { OrderCancelled, type Settings } from './payloads.ts';
import { readRefusal } from './read-refusal.ts';

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
