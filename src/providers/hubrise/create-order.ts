import { GiveUp } from '../../core/domain/errors.ts';
import type { KitchenOrder, OrderRef } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { attachCustomer } from './attach-customer.ts';
import { callHubrise } from './call-hubrise.ts';
import { OrderTaken, type Settings } from './payloads.ts';
import { nameRefusal } from './name-refusal.ts';
import { writeOrder } from './write-order.ts';

/**
 * Creates the order by `POST /location/orders`. HubRise makes another order of every request: never repeat it blindly.
 *
 * - 200 with the order: taken, also without a usable id, since webhooks name our id too
 * - 400, 415, 422: malformed, or "needs to be modified before being attempted again"; `errors` name the fields
 * - 5xx: perhaps taken, so `findOrder` is asked
 * @throws as `callHubrise` does, and GiveUp
 */
export async function createOrder(order: KitchenOrder, context: PosContext<Settings>): Promise<OrderRef> {
  const { customers, itemMap } = context.settings;
  // What HubRise's format cannot hold is given up before anything is sent.
  const guests = writeOrder(order, itemMap, context.now);
  const body =
    customers === 'guest' ? guests : writeOrder(order, itemMap, context.now, await attachCustomer(order, context));
  const answer = await callHubrise(context, { method: 'POST', path: '/location/orders', body });
  if (answer.status < 300) return { providerOrderId: OrderTaken.safeParse(answer.json).data?.id };
  throw new GiveUp(`HubRise refused the order with ${nameRefusal(answer)}`, {
    reason: 'The restaurant could not take this order.',
    // HubRise judges the form alone: what the till makes of the order comes as `rejected` or `cancelled`.
    reasonCode: 'technical',
    httpStatus: answer.status,
  });
}
