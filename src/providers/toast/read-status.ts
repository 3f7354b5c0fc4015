import type { z } from 'zod';
import type { Status } from '../../core/domain/lifecycle.ts';
import type { CanonicalOrder, OrderRef, StatusEvent } from '../../core/domain/order.ts';
import { externalIdOf, requestedOrder, type Settings, type ToastOrder } from './payloads.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { quoteRefusal } from '../call-pos.ts';
import { readShape, readState } from '../read-json.ts';
import { callToast, refusalOf } from './call-toast.ts';

/** Our status for each delivery state. PICKED_UP means that the driver has the order. PENDING: no driver yet. */
const DELIVERY_STATES: ReadonlyMap<string, Status> = new Map([
  ['PICKED_UP', 'en_route'],
  ['IN_PROGRESS', 'en_route'],
  ['DELIVERED', 'completed'],
]);

/** The states of an order that was approved, by staff or automatically. FUTURE means approved, but not begun. */
const TAKEN: readonly string[] = ['APPROVED', 'FUTURE'];

type Order = z.infer<typeof ToastOrder>;
type Progress = Pick<StatusEvent, 'status' | 'nativeStatus' | 'reason' | 'reasonCode'>;
/** The order's ids, and the time to use if the order itself has no time. */
type About = Pick<StatusEvent, 'serviceOrderId' | 'providerOrderId' | 'occurredAt'>;

/** Reads an order's own state. "Closed" and "paid" are ignored, because our orders are paid from the start. */
export function eventsOfOrder(order: Order, about: About, settings: Settings): StatusEvent[] {
  const { approvalStatus, modifiedDate } = order;
  const estimates = estimatesOf(order, settings);
  let progress = readProgress(order);
  if (progress === undefined && estimates !== undefined && TAKEN.includes(approvalStatus ?? '')) {
    progress = { status: 'received', nativeStatus: approvalStatus ?? '' };
  }
  return progress === undefined
    ? []
    : [{ ...progress, ...estimates, ...about, occurredAt: modifiedDate ?? about.occurredAt }];
}

function readProgress({ voided, approvalStatus, deliveryInfo, checks }: Order): Progress | undefined {
  if (voided === true) return { status: 'cancelled', nativeStatus: 'voided', reasonCode: 'restaurant_cancelled' };
  if (approvalStatus === 'NOT_APPROVED') {
    const reason = 'The restaurant did not approve the order in time.';
    return { status: 'failed', nativeStatus: approvalStatus, reason, reasonCode: 'no_answer' };
  }
  const nativeStatus = deliveryInfo?.deliveryState ?? '';
  const status = DELIVERY_STATES.get(nativeStatus);
  return status === undefined ? readKitchen(checks) : { status, nativeStatus };
}

/** The stages: https://doc.toasttab.com/openapi/orders/tag/Data-definitions/schema/Selection/ */
function readKitchen(checks: Order['checks']): Progress | undefined {
  const stages = checks
    .flatMap(({ selections }) => selections)
    .filter(({ voided, selectionType }) => voided !== true && selectionType !== 'SPECIAL_REQUEST')
    .map(({ fulfillmentStatus }) => fulfillmentStatus);
  if (stages.length > 0 && stages.every((stage) => stage === 'READY'))
    return { status: 'ready', nativeStatus: 'READY' };
  const begun = stages.some((stage) => stage === 'READY' || stage === 'SENT');
  return begun ? { status: 'in_progress', nativeStatus: 'SENT' } : undefined;
}

/** A time that equals `promisedDate` is the time that we sent, not an estimate. */
export function estimatesOf(
  order: Pick<Order, 'estimatedFulfillmentDate' | 'promisedDate' | 'diningOption'>,
  { diningOptionGuids }: Settings,
) {
  const { estimatedFulfillmentDate: at, promisedDate, diningOption } = order;
  if (at === undefined || Date.parse(at) === Date.parse(promisedDate ?? '')) return undefined;
  if (diningOption?.guid === diningOptionGuids.pickup) return { estimatedReadyAt: at };
  return diningOption?.guid === diningOptionGuids.delivery ? { estimatedDeliveryAt: at } : undefined;
}

/**
 * @param about Toast's GUID, if known, and our id
 * @returns undefined if Toast has no such order
 * @throws as `callToast` does; TryAgain if the answer is unreadable or about another order; otherwise NeedsOperator
 */
export async function readOrder(
  { guid, serviceOrderId }: { guid: string | undefined; serviceOrderId: string },
  context: PosContext<Settings>,
): Promise<z.infer<ReturnType<typeof requestedOrder>> | undefined> {
  const externalId = externalIdOf(serviceOrderId, context.settings);
  const answer = await callToast(context, 'GET', `/orders/v2/orders/${encodeURIComponent(guid ?? externalId)}`).catch(
    quoteRefusal(
      [403],
      (status) =>
        `Toast refuses to show the order (${status}): give the client the scopes orders:read and orders.channel:read`,
    ),
  );
  // A 400, "The GUID was malformed", does not prove that no order has this externalId.
  if (answer.status === 404) return undefined;
  if (answer.status >= 300) throw refusalOf(answer, 'the order');
  return readState(answer, (json) => readShape(requestedOrder({ guid, externalId }), json));
}

/** @throws as `readOrder` does */
export async function readStatus(
  { providerOrderId: guid }: OrderRef,
  { serviceOrderId }: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<readonly StatusEvent[]> {
  const now = await readOrder({ guid, serviceOrderId }, context);
  if (now === undefined) return [];
  const about = { providerOrderId: now.guid, ...(now.externalId !== undefined && { serviceOrderId }) };
  return eventsOfOrder(now, about, context.settings);
}
