import { NeedsOperator } from '../../core/domain/errors.ts';
import type { CanonicalOrder, OrderRef, StatusEvent } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { readShape } from '../read-shape.ts';
import { readState } from '../read-state.ts';
import { callHubrise } from './call-hubrise.ts';
import { eventsOfOrder } from './events-of-order.ts';
import { findOrder } from './find-order.ts';
import { nameRefusal } from './name-refusal.ts';
import { orderAsked, type Settings } from './payloads.ts';

/**
 * Reads the order's status and its delivery's by `GET /location/orders/:order_id`:
 * https://www.hubrise.com/developers/api/orders. The answer does not say since when.
 *
 * `GET /callback/events` lists what nobody has acknowledged, without states: one more request for each event tells what
 * the order itself says, or less. To take events from there is to delete them, and HubRise's own repeats with them.
 * @throws as `callHubrise` and `findOrder` do; TryAgain if the answer is unreadable or about another order
 */
export async function readStatus(
  ref: OrderRef,
  order: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<readonly StatusEvent[]> {
  const { serviceOrderId } = order;
  const id = ref.providerOrderId ?? (await findOrder(serviceOrderId, context))?.providerOrderId;
  if (id === undefined) return [];
  const path = `/location/orders/${encodeURIComponent(id)}`;
  const answer = await callHubrise(context, { method: 'GET', path, mayLack: true });
  if (answer.status === 404) return [];
  if (answer.status >= 300) {
    throw new NeedsOperator(`HubRise refused to show an order with ${nameRefusal(answer)}`, {
      httpStatus: answer.status,
    });
  }
  const now = readState(answer, (json) => readShape(orderAsked({ id, privateRef: serviceOrderId }), json));
  const about = { providerOrderId: id, serviceOrderId: now.private_ref };
  return eventsOfOrder(now, undefined, about, context.settings);
}
