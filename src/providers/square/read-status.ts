import type { CanonicalOrder, OrderRef, StatusEvent } from '../../core/domain/order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { readShape } from '../read-shape.ts';
import { readState } from '../read-state.ts';
import { callSquare } from './call-square.ts';
import { eventOfFulfillment, eventOfOrder, whatGoesOn } from './event-of-state.ts';
import { findOrder } from './find-order.ts';
import { orderState, type Settings } from './payloads.ts';
import { refusalOf } from './read-answer.ts';
import { referenceOf } from './write-order.ts';

/**
 * Reads the order's and its fulfillment's state: https://developer.squareup.com/reference/square/orders-api/retrieve-order
 *
 * The Events API (`POST /v2/events`) would add the states in between, which move no order that has the last one. It is
 * off until an application enables it, takes the application's own token, and cannot be asked about one order.
 * @throws as `callSquare` does; TryAgain if the answer is unreadable or about another order; NeedsOperator
 */
export async function readStatus(
  ref: OrderRef,
  order: CanonicalOrder,
  context: PosContext<Settings>,
): Promise<readonly StatusEvent[]> {
  const { settings } = context;
  const id = ref.providerOrderId ?? (await findOrder(order, context))?.id;
  if (id === undefined) return [];
  const answer = await callSquare(context, { method: 'GET', path: `/v2/orders/${encodeURIComponent(id)}` });
  if (answer.status === 404) return [];
  if (answer.status >= 300) throw refusalOf(answer, 'to show the order');

  const shape = orderState({ id, locationId: settings.locationId, reference: referenceOf(order.serviceOrderId) });
  const { order: now } = readState(answer, (json) => readShape(shape, json));
  const about = {
    providerOrderId: id,
    ...(now.reference_id !== undefined && { serviceOrderId: order.serviceOrderId }),
    occurredAt: now.updated_at,
  };
  const wanted = Date.parse(order.fulfillment.requestedAt ?? '');
  // The time that we sent is no estimate of Square's.
  const estimate = (time: string | undefined) => (Date.parse(time ?? '') === wanted ? undefined : time);
  const fulfillments = whatGoesOn(now.fulfillments, ({ state }) => state).map((each) => {
    const all = { ...each.pickup_details, ...each.delivery_details };
    return { ...all, state: each.state, pickup_at: estimate(all.pickup_at), deliver_at: estimate(all.deliver_at) };
  });
  const cancelled = eventOfOrder(now.state, about, fulfillments[0]);
  if (cancelled.length > 0) return cancelled;
  // A fulfillment begins as PROPOSED, which no webhook reports, so none of those is missing.
  return fulfillments.flatMap(({ state, ...details }) =>
    state === 'PROPOSED' ? [] : eventOfFulfillment(state, about, settings, details),
  );
}
