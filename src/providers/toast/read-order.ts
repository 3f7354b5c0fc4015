import type { z } from 'zod';
import { NeedsOperator } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { quoteRefusal } from '../quote-refusal.ts';
import { readShape } from '../read-shape.ts';
import { readState } from '../read-state.ts';
import { callToast } from './call-toast.ts';
import { externalIdOf } from './external-id-of.ts';
import { orderAsked, type Settings } from './payloads.ts';

/**
 * Reads an order: https://doc.toasttab.com/openapi/orders/operation/ordersGuidGet/
 * @param about Toast's GUID, where it is known, and our id
 * @returns undefined if Toast has no such order
 * @throws as `callToast` does; TryAgain if the answer is unreadable or about another order; NeedsOperator
 */
export async function readOrder(
  { guid, serviceOrderId }: { guid: string | undefined; serviceOrderId: string },
  context: PosContext<Settings>,
): Promise<z.infer<ReturnType<typeof orderAsked>> | undefined> {
  const externalId = externalIdOf(serviceOrderId, context.settings);
  const answer = await callToast(context, 'GET', `/orders/v2/orders/${encodeURIComponent(guid ?? externalId)}`).catch(
    quoteRefusal(
      [403],
      (status) => `Toast shows us no order (${status}): has the client the scopes orders:read and orders.channel:read?`,
    ),
  );
  const { status: httpStatus } = answer;
  // Not so 400, "The GUID was malformed": it does not say that there is no order with this externalId.
  if (httpStatus === 404) return undefined;
  if (httpStatus >= 300) {
    throw new NeedsOperator(`Toast shows us no order (${httpStatus}): is baseUrl right?`, { httpStatus });
  }
  return readState(answer, (json) => readShape(orderAsked({ guid, externalId }), json));
}
