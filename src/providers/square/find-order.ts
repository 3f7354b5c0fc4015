import { TryAgain } from '../../core/domain/errors.ts';
import type { CanonicalOrder } from '../../core/domain/order.ts';
import { callSquare, type Square } from './call-square.ts';
import { FoundOrders, type SquareOrder } from './payloads.ts';
import { refusalOf } from './read-answer.ts';
import { referenceOf } from './write-order.ts';

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
