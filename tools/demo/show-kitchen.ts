import type { Simulator } from '../../world/pos/simulator.ts';
import { sendJson, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { renderTickets } from './render-tickets.ts';

/** Serves the kitchen's screen for a browser. */
export function showKitchen(pos: Simulator, port = 0): Promise<HttpServer> {
  return serveHttp((request, response) => {
    if (request.method !== 'GET' || request.url !== '/')
      return sendJson(response, 404, { error: 'not found: there is only GET /' });
    return void response.setHeader('content-type', 'text/html; charset=utf-8').end(renderTickets(pos.tickets));
  }, port);
}
