import { Agent, request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import { readBody, sendJson, serveHttp, type HttpServer } from './serve-http.ts';

const PROBE_EVERY_MS = 250;
const PROBE_TIMEOUT_MS = 2_000;
/** Time for an answer to begin; a stream of events lasts longer. */
const ANSWER_MS = 30_000;

/**
 * Balances requests over the ready ones of `targets()` in turn, as the load balancer in front of the service does: it
 * polls `/readyz`, tries the next target if a connection is refused, and answers 502 if one breaks.
 * @param port any free one by default
 * @param serves true if a target is for a host of the URL, such as `127.0.0.1:80`; by default each is for all
 */
export async function balanceLoad(
  targets: () => readonly string[],
  serves: (target: string, host: string) => boolean = () => true,
  port = 0,
): Promise<HttpServer> {
  const agent = new Agent({ keepAlive: true });
  let isPolled = false;
  let ready: string[] = [];
  let turn = 0;

  const probe = async (): Promise<void> => {
    const known = targets();
    const probes = known.map((target) =>
      fetch(`${target}/readyz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) }).then(
        async (response) => {
          await response.arrayBuffer();
          return response.status === 200;
        },
        () => false,
      ),
    );
    const answers = await Promise.all(probes);
    // A target that was replaced meanwhile ends, and says so.
    if (targets().join() !== known.join()) return probe();
    ready = known.filter((_, nth) => answers[nth]);
    isPolled = known.length > 0;
  };
  const polling = setInterval(() => void probe(), PROBE_EVERY_MS);
  await probe();

  const forward = (
    target: string,
    request: IncomingMessage,
    body: Buffer,
    response: ServerResponse,
  ): Promise<boolean> =>
    new Promise((settled) => {
      const upstream = send(
        new URL(target),
        {
          method: request.method,
          path: request.url,
          headers: request.rawHeaders,
          agent,
        },
        (answer) => {
          clearTimeout(late);
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(response);
          answer.on('error', () => response.destroy());
          settled(true);
        },
      );
      const late = setTimeout(() => upstream.destroy(new Error('no answer')), ANSWER_MS).unref();
      upstream.on('error', (error: NodeJS.ErrnoException) => {
        clearTimeout(late);
        if (error.code === 'ECONNREFUSED') return settled(false);
        if (!response.headersSent) sendJson(response, 502, { error: 'the connection to the service broke' });
        return settled(true);
      });
      response.on('close', () => upstream.destroy());
      upstream.end(body);
    });

  const server = await serveHttp(async (request, response) => {
    const body = await readBody(request);
    turn += 1;
    // The targets may have started since the last poll, which found none.
    if (!isPolled) await probe();
    const able = ready.filter((target) => serves(target, request.headers.host ?? ''));
    const inTurn = able.map((_, nth) => able[(turn + nth) % able.length] ?? '');
    for (const target of inTurn) if (await forward(target, request, body, response)) return;
    sendJson(response, 503, { error: 'no instance is ready' });
  }, port);
  return {
    ...server,
    async stop() {
      clearInterval(polling);
      await server.stop();
      agent.destroy();
    },
  };
}
