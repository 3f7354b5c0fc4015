import type { z } from 'zod';
import type { Status } from '../../core/domain/lifecycle.ts';
import type { StatusEvent } from '../../core/domain/order.ts';
import type { ToastOrder } from './payloads.ts';

/** Our status for each delivery state. PICKED_UP: the driver has the order. PENDING: no driver has taken it yet. */
const DELIVERY_STATES: ReadonlyMap<string, Status> = new Map([
  ['PICKED_UP', 'en_route'],
  ['IN_PROGRESS', 'en_route'],
  ['DELIVERED', 'completed'],
]);

/** The order's names, and since when it is so. */
type About = Pick<StatusEvent, 'serviceOrderId' | 'providerOrderId' | 'occurredAt'>;

/**
 * What an order itself says, which is not its guest order status: that it was voided, that nobody approved it, where its
 * delivery is, and else how far the kitchen is. That it is closed and paid says nothing: ours are paid from the start.
 */
export function eventsOfOrder(order: z.infer<typeof ToastOrder>, about: About): StatusEvent[] {
  const { voided, approvalStatus, deliveryInfo } = order;
  if (voided === true) return [{ status: 'cancelled', nativeStatus: 'voided', ...about }];
  if (approvalStatus === 'NOT_APPROVED') {
    const reason = 'The restaurant did not approve the order in time.';
    return [{ status: 'failed', nativeStatus: approvalStatus, reason, ...about }];
  }
  const nativeStatus = deliveryInfo?.deliveryState ?? '';
  const status = DELIVERY_STATES.get(nativeStatus);
  return status === undefined ? eventsOfKitchen(order, about) : [{ status, nativeStatus, ...about }];
}

/**
 * The kitchen's part, by the `fulfillmentStatus` of what is cooked: ready once all of it is READY, in progress from the
 * first that is SENT. https://doc.toasttab.com/openapi/orders/tag/Data-definitions/schema/Selection/
 */
function eventsOfKitchen({ checks }: z.infer<typeof ToastOrder>, about: About): StatusEvent[] {
  const stages = checks
    .flatMap(({ selections }) => selections)
    .filter(({ voided, selectionType }) => voided !== true && selectionType !== 'SPECIAL_REQUEST')
    .map(({ fulfillmentStatus }) => fulfillmentStatus);
  if (stages.length > 0 && stages.every((stage) => stage === 'READY')) {
    return [{ status: 'ready', nativeStatus: 'READY', ...about }];
  }
  const begun = stages.some((stage) => stage === 'READY' || stage === 'SENT');
  return begun ? [{ status: 'in_progress', nativeStatus: 'SENT', ...about }] : [];
}
