import { NeedsOperator, TryAgain } from '../../core/domain/errors.ts';
import type { OrderRef } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { callHubrise } from './call-hubrise.ts';
import { nameRefusal } from './name-refusal.ts';
import { Orders, type Settings } from './payloads.ts';

/**
 * Finds an order by `GET /location/orders?private_ref=`, which searches only what this client sent:
 * https://www.hubrise.com/developers/api/general-concepts#private-refs. HubRise allows ten a minute per connection.
 * @throws as `callHubrise` does; TryAgain if the answer proves neither that the order exists nor that it does not
 */
export async function findOrder(serviceOrderId: string, context: PosContext<Settings>): Promise<OrderRef | undefined> {
  const path = `/location/orders?private_ref=${encodeURIComponent(serviceOrderId)}`;
  const answer = await callHubrise(context, { method: 'GET', path, heavy: true });
  if (answer.status >= 300) {
    throw new NeedsOperator(`HubRise refused to look an order up with ${nameRefusal(answer)}`, {
      httpStatus: answer.status,
    });
  }
  const orders = Orders.safeParse(answer.json);
  const order = orders.data?.find(({ private_ref }) => private_ref === serviceOrderId);
  if (order !== undefined) return { providerOrderId: order.id };
  // A wrong "absent" leads to a second ticket, so only a complete list without the order counts.
  if (orders.success && !answer.headers.has('x-cursor-next')) return undefined;
  throw new TryAgain('HubRise’s list of orders cannot be read, or is not all of it', { sent: false });
}
