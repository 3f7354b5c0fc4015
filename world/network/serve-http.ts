import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type HttpServer = {
  /** Such as `http://127.0.0.1:40123`, without a slash at the end. */
  url: string;
  port: number;
  /** Cuts open requests, hanging ones included. Safe to repeat. */
  stop(): Promise<void>;
};

type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** Serves on 127.0.0.1, at any free port unless one is given. If a handler throws, it answers 500 with the message. */
export async function serveHttp(handle: Handler, port = 0): Promise<HttpServer> {
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await handle(request, response);
    } catch (error) {
      if (!response.headersSent && !response.destroyed) sendJson(response, 500, { error: String(error) });
    }
  }
  const server = createServer((request, response) => void answer(request, response)).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const bound = (server.address() as AddressInfo).port;
  return {
    url: `http://127.0.0.1:${bound}`,
    port: bound,
    async stop() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Reads the exact bytes: signatures cover them. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}
