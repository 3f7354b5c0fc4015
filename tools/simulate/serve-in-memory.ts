/** Takes the place of `world/network/serve-http.ts`: a party serves on the simulated network, without a port. */
import type { IncomingMessage } from 'node:http';
import type { HttpServer } from '../../world/network/serve-http.ts';
import { callHandler, theNetwork, type Handle } from './network.ts';
import { currentParty } from './schedule.ts';

export type { HttpServer };

let served = 0;

/** Forgets how many were served, so that each run has the same ports. */
export const beginServing = (): void => {
  served = 0;
};

export async function serveHttp(handle: Handle): Promise<HttpServer> {
  const party = currentParty();
  if (party === undefined) throw new Error('only a party may serve on the simulated network');
  served += 1;
  const port = 40_000 + served;
  const url = `http://127.0.0.1:${port}`;
  let isServing = true;
  const answer: Handle = async (request, response) => {
    try {
      await handle(request, response);
    } catch (error) {
      if (!response.headersSent) sendJson(response, 500, { error: String(error) });
    }
  };
  theNetwork().serve(url, () => (isServing ? { party, answer: (request) => callHandler(answer, request) } : undefined));
  return {
    url,
    port,
    async stop() {
      isServing = false;
    },
  };
}

export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export function sendJson(
  response: Parameters<Handle>[1],
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}
