import type { Status } from '../../core/domain/lifecycle.ts';
import type { CanonicalOrder, OrderRef, StatusEvent } from '../../core/domain/order.ts';
import { reasonInWords } from '../order-texts.ts';
import { type Details, FoundOrders, orderState, type Settings, type SquareOrder } from './payloads.ts';
import { TryAgain } from '../../core/domain/errors.ts';
import { callSquare, refusalOf, type Square } from './call-square.ts';
import { referenceOf } from './write-order.ts';
import type { PosContext } from '../../core/domain/provider.ts';
import { readShape, readState } from '../read-json.ts';

/** Our status for each state: https://developer.squareup.com/reference/square/enums/FulfillmentState */
const STATUS_BY_STATE: ReadonlyMap<string, Status> = new Map([
  ['PROPOSED', 'received'],
  ['RESERVED', 'in_progress'],
  ['PREPARED', 'ready'],
  ['COMPLETED', 'completed'],
  ['CANCELED', 'cancelled'],
  ['FAILED', 'failed'],
]);

type About = Pick<StatusEvent, 'serviceOrderId' | 'providerOrderId' | 'occurredAt'>;

/** Leaves out cancelled and failed fulfillments if others remain, because the order continues with the others. */
export function activeFulfillments<Each>(
  fulfillments: readonly Each[],
  stateOf: (each: Each) => string,
): readonly Each[] {
  const others = fulfillments.filter((each) => !['CANCELED', 'FAILED'].includes(stateOf(each)));
  return others.length > 0 ? others : fulfillments;
}

/**
 * @param details further fields of the fulfillment. A webhook has only the state
 * @returns one event; none for an unknown state, or for COMPLETED if `closedMeansCompleted` is false
 */
export function eventOfFulfillment(
  state: string,
  about: About,
  { closedMeansCompleted }: Settings,
  details: Details = {},
): StatusEvent[] {
  const status = STATUS_BY_STATE.get(state);
  if (status === undefined || (status === 'completed' && !closedMeansCompleted)) return [];
  const estimates = { estimatedReadyAt: details.pickup_at, estimatedDeliveryAt: details.deliver_at };
  return [{ status, nativeStatus: state, ...about, ...estimates, ...reasonOf(status, details) }];
}

/** Only the order state CANCELED is about the food. The other states of an order are about its payment. */
export function eventOfOrder(state: string | undefined, about: About, details: Details = {}): StatusEvent[] {
  if (state !== 'CANCELED') return [];
  return [{ status: 'cancelled', nativeStatus: state, ...about, ...reasonOf('cancelled', details) }];
}

/** We infer from `expired_at` that nobody began the order. */
function reasonOf(status: Status, { cancel_reason, expired_at }: Details): Pick<StatusEvent, 'reason' | 'reasonCode'> {
  if (status !== 'cancelled' && status !== 'failed') return {};
  const reason = cancel_reason?.trim() || undefined;
  const otherwise = status === 'failed' ? 'other' : 'restaurant_cancelled';
  return { reason, reasonCode: reasonInWords(reason ?? '') ?? (expired_at === undefined ? otherwise : 'no_answer') };
}

const PAGE = 100;
/** Maximum number of pages that a search reads. They hold a day's orders of a busy location. */
const PAGES = 20;
/** Maximum difference in milliseconds between Square's clock and the platform's. */
const SKEW_MS = 60 * 60_000;

/**
 * Finds the order by reading all of the location's orders since it was placed. Square cannot search by our reference.
 * https://developer.squareup.com/docs/orders-api/manage-orders/search-orders
 * @throws as `callSquare` and `refusalOf` do; TryAgain also if the searched pages do not include all orders
 */
export async function findOrder(order: CanonicalOrder, context: Square): Promise<SquareOrder | undefined> {
  const reference = referenceOf(order.serviceOrderId);
  const start_at = new Date(Date.parse(order.placedAt) - SKEW_MS).toISOString();
  const query = {
    filter: { date_time_filter: { created_at: { start_at } } },
    sort: { sort_field: 'CREATED_AT', sort_order: 'ASC' },
  };
  let cursor: string | undefined;
  for (let page = 0; page < PAGES; page += 1) {
    const body = { location_ids: [context.settings.locationId], query, limit: PAGE, ...(cursor && { cursor }) };
    const answer = await callSquare(context, { method: 'POST', path: '/v2/orders/search', body });
    if (answer.status >= 300) throw refusalOf(answer, "to search the location's orders");
    const list = FoundOrders.safeParse(answer.json).data;
    if (list === undefined) throw new TryAgain("Square's answer to the search cannot be read", { sent: true });
    const found = list.orders.find((each) => each?.reference_id === reference);
    if (found) return found;
    if (!list.cursor) return undefined;
    cursor = list.cursor;
  }
  throw new TryAgain(`the order is not among the first ${PAGE * PAGES} since it was placed`, { sent: true });
}

/**
 * The Events API (`POST /v2/events`) would add earlier states, which do not matter once the last state is known. It is
 * off until an application enables it, needs the application's own token, and cannot be queried for one order.
 * @throws as `callSquare` and `refusalOf` do; TryAgain also if the answer is unreadable or about another order
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
  // A time that equals the requested time is the one that we sent, not an estimate.
  const estimate = (time: string | undefined) => (Date.parse(time ?? '') === wanted ? undefined : time);
  const fulfillments = activeFulfillments(now.fulfillments, ({ state }) => state).map((each) => {
    const all = { ...each.pickup_details, ...each.delivery_details };
    return { ...all, state: each.state, pickup_at: estimate(all.pickup_at), deliver_at: estimate(all.deliver_at) };
  });
  const cancelled = eventOfOrder(now.state, about, fulfillments[0]);
  if (cancelled.length > 0) return cancelled;
  // A fulfillment begins as PROPOSED. No webhook reports this state, so it is not an event here either.
  return fulfillments.flatMap(({ state, ...details }) =>
    state === 'PROPOSED' ? [] : eventOfFulfillment(state, about, settings, details),
  );
}
