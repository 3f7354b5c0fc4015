import type { z } from 'zod';
import type { Status } from '../../core/domain/lifecycle.ts';
import type { CanonicalOrder, OrderRef, StatusEvent } from '../../core/domain/order.ts';
import { externalIdOf, orderAsked, type Settings, type ToastOrder } from './payloads.ts';
import { NeedsOperator } from '../../core/domain/errors.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { quoteRefusal } from '../call-pos.ts';
import { readShape, readState } from '../read-json.ts';
import { callToast } from './call-toast.ts';

/** Our status for each delivery state. PICKED_UP: the driver has the order. PENDING: no driver has taken it yet. */
const DELIVERY_STATES: ReadonlyMap<string, Status> = new Map([
  ['PICKED_UP', 'en_route'],
  ['IN_PROGRESS', 'en_route'],
  ['DELIVERED', 'completed'],
]);

/** Approved by staff, or by itself. FUTURE: and not yet begun. */
const TAKEN: readonly string[] = ['APPROVED', 'FUTURE'];

type Order = z.infer<typeof ToastOrder>;
type Said = Pick<StatusEvent, 'status' | 'nativeStatus' | 'reason' | 'reasonCode'>;
/** The order's names, and since when it is so where the order itself does not say. */
type About = Pick<StatusEvent, 'serviceOrderId' | 'providerOrderId' | 'occurredAt'>;

/**
 * What an order itself says, which is not its guest order status: that it was voided, that nobody approved it, where its
 * delivery is, and else how far the kitchen is. That it is closed and paid says nothing: ours are paid from the start. One
 * that was taken and says no more is an event for its estimate alone.
 */
export function eventsOfOrder(order: Order, about: About, settings: Settings): StatusEvent[] {
  const { approvalStatus, modifiedDate } = order;
  const estimates = estimatesOf(order, settings);
  let said = readSaid(order);
  if (said === undefined && estimates !== undefined && TAKEN.includes(approvalStatus ?? '')) {
    said = { status: 'received', nativeStatus: approvalStatus ?? '' };
  }
  return said === undefined ? [] : [{ ...said, ...estimates, ...about, occurredAt: modifiedDate ?? about.occurredAt }];
}

function readSaid({ voided, approvalStatus, deliveryInfo, checks }: Order): Said | undefined {
  if (voided === true) return { status: 'cancelled', nativeStatus: 'voided', reasonCode: 'restaurant_cancelled' };
  if (approvalStatus === 'NOT_APPROVED') {
    const reason = 'The restaurant did not approve the order in time.';
    return { status: 'failed', nativeStatus: approvalStatus, reason, reasonCode: 'no_answer' };
  }
  const nativeStatus = deliveryInfo?.deliveryState ?? '';
  const status = DELIVERY_STATES.get(nativeStatus);
  return status === undefined ? readKitchen(checks) : { status, nativeStatus };
}

/**
 * The kitchen's part, by the `fulfillmentStatus` of what is cooked: ready once all of it is READY, in progress from the
 * first that is SENT. https://doc.toasttab.com/openapi/orders/tag/Data-definitions/schema/Selection/
 */
function readKitchen(checks: Order['checks']): Said | undefined {
  const stages = checks
    .flatMap(({ selections }) => selections)
    .filter(({ voided, selectionType }) => voided !== true && selectionType !== 'SPECIAL_REQUEST')
    .map(({ fulfillmentStatus }) => fulfillmentStatus);
  if (stages.length > 0 && stages.every((stage) => stage === 'READY'))
    return { status: 'ready', nativeStatus: 'READY' };
  const begun = stages.some((stage) => stage === 'READY' || stage === 'SENT');
  return begun ? { status: 'in_progress', nativeStatus: 'SENT' } : undefined;
}

/**
 * `estimatedFulfillmentDate` is when it is "ready for pickup or to be delivered", as the dining option has it. The time
 * that the order was promised for is the one that we sent, and nobody's estimate.
 */
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

/**
 * Reads the order. It shows no guest order status, and where a delivery is only to clients with
 * `delivery_info.address:read`.
 * @throws as `readOrder` does
 */
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
