import type { KitchenOrder, OrderRef } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import type { Settings } from './payloads.ts';
import { postOrder } from './post-order.ts';
import { writeOrder } from './write-order.ts';

/**
 * Posts the order to the location's channel link. `channelOrderId` is the order's id in every attempt, and Deliverect
 * deduplicates on it: a repeat gets the first answer and is "hidden as a duplicate"
 * (https://developers.deliverect.com/v3.0-ordering-experience/docs/troubleshooting).
 *
 * 2xx only means that Deliverect has the order. A webhook says whether the POS takes it, and names Deliverect's id.
 */
export async function createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef> {
  const reason = 'The restaurant could not take this order.';
  await postOrder(writeOrder(order, context.settings, context.now), context, { what: 'the order', reason });
  return {};
}
