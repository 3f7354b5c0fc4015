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

/** The order that has the state, by its names, and since when. */
type About = Pick<StatusEvent, 'serviceOrderId' | 'providerOrderId' | 'occurredAt'>;

/** An order of several fulfillments goes on by the others while one was cancelled or has failed. */
export function whatGoesOn<Each>(fulfillments: readonly Each[], stateOf: (each: Each) => string): readonly Each[] {
  const others = fulfillments.filter((each) => !['CANCELED', 'FAILED'].includes(stateOf(each)));
  return others.length > 0 ? others : fulfillments;
}

/**
 * @param details what is known of it besides: a webhook has the state alone
 * @returns one event, or none: an unknown state, or a completed one that does not mean completed here
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
  return [{ status, nativeStatus: state, ...about, ...estimates, ...whyOf(status, details) }];
}

/** Of the order's own states only the cancellation is about the food: the others are about payment. */
export function eventOfOrder(state: string | undefined, about: About, details: Details = {}): StatusEvent[] {
  if (state !== 'CANCELED') return [];
  return [{ status: 'cancelled', nativeStatus: state, ...about, ...whyOf('cancelled', details) }];
}

/**
 * Why it ended. The reasons that Square's own page offers are "Item(s) not in stock", "Customer cancellation request" and
 * words of one's own (https://squareup.com/help/article/8323-cancel-and-refund-orders-with-square). Without one, who cancels a
 * fulfillment is the restaurant; one that failed was "not explicitly canceled". That an expired one was never begun is
 * inferred from its name.
 */
function whyOf(status: Status, { cancel_reason, expired_at }: Details): Pick<StatusEvent, 'reason' | 'reasonCode'> {
  if (status !== 'cancelled' && status !== 'failed') return {};
  const reason = cancel_reason?.trim() || undefined;
  const otherwise = status === 'failed' ? 'other' : 'restaurant_cancelled';
  return { reason, reasonCode: reasonInWords(reason ?? '') ?? (expired_at === undefined ? otherwise : 'no_answer') };
}

const PAGE = 100;
/** The most pages searched: a busy location's day. */
const PAGES = 20;
/** The most milliseconds between Square's clock and the platform's. */
const SKEW_MS = 60 * 60_000;

/**
 * Finds the order among the location's orders since it was placed. Square cannot search by reference.
 * https://developer.squareup.com/docs/orders-api/manage-orders/search-orders
 * @throws as `callSquare` does, NeedsOperator; TryAgain also where there are more than are searched: one may be there
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
    if (answer.status >= 300) throw refusalOf(answer, 'to search its orders');
    const list = FoundOrders.safeParse(answer.json).data;
    if (list === undefined) throw new TryAgain('Square answered a search with what cannot be read', { sent: true });
    const found = list.orders.find((each) => each?.reference_id === reference);
    if (found) return found;
    if (!list.cursor) return undefined;
    cursor = list.cursor;
  }
  throw new TryAgain('Square has more orders since this one was placed than are searched', { sent: true });
}

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
