import { serveHttp, sendJson, type HttpServer } from '../test/support/serve-http.ts';
import type { PlaceOrder } from './place-orders.ts';

/** Takes orders from anyone with curl: `POST /orders?type=pickup` or `delivery`. */
export function takeOrders(place: PlaceOrder): Promise<HttpServer> {
  return serveHttp(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://platform');
    const type = searchParams.get('type') ?? 'pickup';
    if (request.method !== 'POST' || pathname !== '/orders') {
      sendJson(response, 404, { error: 'only POST /orders is here' });
    } else if (type !== 'pickup' && type !== 'delivery') {
      sendJson(response, 400, { error: `type is "${type}", not pickup or delivery` });
    } else {
      sendJson(response, 201, await place(type));
    }
  });
}
