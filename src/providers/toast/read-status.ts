import { NeedsOperator } from '../../core/domain/errors.ts';
import type { CanonicalOrder, OrderRef, StatusEvent } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { quoteRefusal } from '../quote-refusal.ts';
import { readShape } from '../read-shape.ts';
import { readState } from '../read-state.ts';
import { callToast } from './call-toast.ts';
import { eventsOfOrder } from './events-of-order.ts';
import { externalIdOf } from './external-id-of.ts';
import { orderAsked, type Settings } from './payloads.ts';

/**
 * Reads the order: https://doc.toasttab.com/openapi/orders/operation/ordersGuidGet/
 * The answer has no guest order status. It shows where a delivery is only to clients with `delivery_info.address:read`.
 * @throws as `callToast` does; TryAgain if the answer is unreadable or about another order; NeedsOperator
 */
export async function readStatus(
  { providerOrderId: guid }: OrderRef,
  order: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<readonly StatusEvent[]> {
  const externalId = externalIdOf(order.serviceOrderId, context.settings);
  const answer = await callToast(context, 'GET', `/orders/v2/orders/${encodeURIComponent(guid ?? externalId)}`).catch(
    quoteRefusal(
      [403],
      (status) => `Toast shows us no order (${status}): has the client the scopes orders:read and orders.channel:read?`,
    ),
  );
  const { status: httpStatus } = answer;
  // 400: "The GUID was malformed." That an externalId may take its place is not documented here.
  if (httpStatus === 404 || (httpStatus === 400 && guid === undefined)) return [];
  if (httpStatus >= 300) {
    throw new NeedsOperator(`Toast shows us no order (${httpStatus}): is baseUrl right?`, { httpStatus });
  }
  const now = readState(answer, (json) => readShape(orderAsked({ guid, externalId }), json));
  return eventsOfOrder(now, {
    providerOrderId: now.guid,
    ...(now.externalId !== undefined && { serviceOrderId: order.serviceOrderId }),
    occurredAt: now.modifiedDate,
  });
}
