import type { ServerResponse } from 'node:http';
import { sendJson } from '../network/serve-http.ts';
import type { Fault } from './simulator.ts';

/** Sends a fault of `behave`: a text unchanged, anything else as JSON. */
export function sendFault(response: ServerResponse, { status, headers, body = {} }: Exclude<Fault, string>): void {
  if (typeof body === 'string') response.writeHead(status, headers).end(body);
  else sendJson(response, status, body, headers);
}
