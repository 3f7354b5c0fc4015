import { serveHttp, sendJson, type HttpServer } from '../../world/network/serve-http.ts';
import type { ShownOrder } from '../../src/core/orders/show-order.ts';
import type { PlacedOrder, PlaceOrder } from './place-orders.ts';
import type { Tracker } from './serve-tracker.ts';

/** Serves `POST /orders?type=pickup` (or `delivery`), which places an order. The answer has the URL of its tracker. */
export function takeOrders(place: PlaceOrder, tracker: Tracker, port = 0): Promise<HttpServer> {
  return take(tracker, port, (query) => {
    const type = query.get('type') ?? 'pickup';
    return type === 'pickup' || type === 'delivery' ? place(type) : `type is "${type}", not pickup or delivery`;
  });
}

/** Serves `POST /orders?id=4711`, which signals an order of the user's own platform. */
export function takeOwnOrders(
  place: (orderId: string) => Promise<PlacedOrder>,
  tracker: Tracker,
  port = 0,
): Promise<HttpServer> {
  return take(tracker, port, (query) => place(query.get('id') ?? '').catch((error: Error) => error.message));
}

/** @throws Error if the order is over, because nothing would happen to it */
export function refuseEnded(orderId: string, shown: Pick<ShownOrder, 'order' | 'notified'> | undefined): void {
  if (!shown?.order?.endedAt) return;
  throw new Error(`order ${orderId} is over: a signal no longer changes it. ${shown.notified}`);
}

/** @param place returns the placed order, or a sentence why it was not placed */
function take(
  tracker: Tracker,
  port: number,
  place: (query: URLSearchParams) => Promise<PlacedOrder | string> | string,
): Promise<HttpServer> {
  return serveHttp(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://platform');
    if (request.method !== 'POST' || pathname !== '/orders') {
      sendJson(response, 404, { error: 'not found: there is only POST /orders' });
      return;
    }
    const placed = await place(searchParams);
    if (typeof placed === 'string') sendJson(response, 400, { error: placed });
    else sendJson(response, 201, { ...placed, trackerUrl: await tracker.urlOf(placed.serviceOrderId) });
  }, port);
}
