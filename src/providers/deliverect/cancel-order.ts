import type { CanonicalOrder, KitchenOrder, OrderRef } from '../../core/domain/order.ts';
import type { CancelAnswer, PosContext } from '../../core/domain/provider.ts';
import type { Settings } from './payloads.ts';
import { postOrder } from './post-order.ts';
import { writeOrder } from './write-order.ts';

/** "Cancel": https://developers.deliverect.com/page/order-status */
const CANCEL = 100;

/**
 * Posts the order once more, with the status of a cancel: the same `channelOrderId` names it, so that Deliverect's own id
 * is not needed. "There is no validation in Deliverect to prevent cancellation requests based on the current order
 * status", and whatever is well-formed gets a 201: the POS confirms by 110, or nobody ever answers.
 * https://developers.deliverect.com/v3.0-ordering-experience/reference/order (read in November 2026)
 *
 * The note that the POS prints with it is the reason, and so is `cancellationReason`, as in the example of a cancel. The
 * rest is as it was, though only the id counts: the endpoint requires what it requires of a new order.
 */
export async function cancelOrder(
  _ref: OrderRef,
  order: CanonicalOrder & Pick<KitchenOrder, 'callOutCode'>,
  context: PosContext<Settings>,
): Promise<CancelAnswer> {
  const body = writeOrder(order, context.settings, context.now);
  const reason = 'The restaurant could not cancel this order.';
  const { cancelReason: cancellationReason = 'Cancelled on the ordering platform' } = order;
  const cancel = { ...body, note: order.cancelReason ?? body['note'], status: CANCEL, cancellationReason };
  await postOrder(cancel, context, { what: 'to cancel the order', reason });
  return 'requested';
}
