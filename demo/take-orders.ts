import { serveHttp, sendJson, type HttpServer } from '../test/support/serve-http.ts';
import type { PlacedOrder, PlaceOrder } from './place-orders.ts';
import type { Tracker } from './serve-tracker.ts';

/** Takes orders from anyone with curl: `POST /orders?type=pickup` or `delivery`. The answer says where it is tracked. */
export function takeOrders(place: PlaceOrder, tracker: Tracker): Promise<HttpServer> {
  return take(tracker, (query) => {
    const type = query.get('type') ?? 'pickup';
    return type === 'pickup' || type === 'delivery' ? place(type) : `type is "${type}", not pickup or delivery`;
  });
}

/** Takes orders of the reader's own platform: `POST /orders?id=4711`. */
export function takeOwnOrders(place: (orderId: string) => Promise<PlacedOrder>, tracker: Tracker): Promise<HttpServer> {
  return take(tracker, (query) => place(query.get('id') ?? '').catch((error: Error) => error.message));
}

/** @param place returns why it places none */
function take(
  tracker: Tracker,
  place: (query: URLSearchParams) => Promise<PlacedOrder | string> | string,
): Promise<HttpServer> {
  return serveHttp(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://platform');
    if (request.method !== 'POST' || pathname !== '/orders') {
      sendJson(response, 404, { error: 'only POST /orders is here' });
      return;
    }
    const placed = await place(searchParams);
    if (typeof placed === 'string') sendJson(response, 400, { error: placed });
    else sendJson(response, 201, { ...placed, trackerUrl: await tracker.urlOf(placed.serviceOrderId) });
  });
}
