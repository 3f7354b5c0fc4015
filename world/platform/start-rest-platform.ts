/**
 * An ordering platform with a REST API: `GET /v1/orders/{id}`, and its items in pages of two, each with the link to the
 * next. Errors are problem details: https://www.rfc-editor.org/rfc/rfc9457
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { KitchenOrder } from '../../src/core/domain/order.ts';
import { sendJson, serveHttp } from '../network/serve-http.ts';

export type RestPlatform = {
  /** `ORDER_API_URL`, with a path of its own. */
  readonly url: string;
  /** Orders by id. May be changed at any time. */
  readonly orders: Map<string, KitchenOrder>;
  /** The paths with queries that were asked for so far, oldest first, also those of refused requests. */
  readonly requests: readonly string[];
  /** Answers a request itself, if it returns true. May be set and removed at any time. */
  answer: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  /** Safe to repeat. */
  stop(): Promise<void>;
};

const PAGE = 2;

/** @param token the required `Authorization: Bearer` */
export async function startRestPlatform(token: string): Promise<RestPlatform> {
  const orders = new Map<string, KitchenOrder>();
  const requests: string[] = [];
  const server = await serveHttp((request, response) => {
    requests.push(request.url ?? '');
    if (platform.answer?.(request, response) === true) return;
    if (request.headers.authorization !== `Bearer ${token}`) {
      return sendProblem(response, 401, 'who is asking?', { 'www-authenticate': 'Bearer' });
    }
    const { pathname, searchParams } = new URL(request.url ?? '', server.url);
    const [, id = '', below] = /^\/v1\/orders\/([^/]+)(\/items)?$/.exec(pathname) ?? [];
    if (request.method !== 'GET' || id === '') return sendProblem(response, 404, 'nothing is here');
    if (!/^[\w.-]+$/.test(decodeURIComponent(id))) return sendProblem(response, 400, 'no order can have this id');
    const order = orders.get(decodeURIComponent(id));
    if (order === undefined) return sendProblem(response, 404, 'no such order');
    const { items, ...others } = order;
    if (below === undefined) return sendJson(response, 200, { ...others, itemsUrl: `${pathname}/items` });
    const page = Number(searchParams.get('page') ?? '1');
    const next = page * PAGE < items.length ? `${pathname}?page=${page + 1}` : null;
    sendJson(response, 200, { items: items.slice((page - 1) * PAGE, page * PAGE), next });
  });
  const platform: RestPlatform = {
    url: `${server.url}/v1/`,
    orders,
    requests,
    answer: undefined,
    stop: () => server.stop(),
  };
  return platform;
}

function sendProblem(response: ServerResponse, status: number, title: string, headers = {}): void {
  sendJson(response, status, { title, status }, { 'content-type': 'application/problem+json', ...headers });
}
