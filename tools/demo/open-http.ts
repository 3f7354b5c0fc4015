import { once } from 'node:events';
import { connect } from 'node:net';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { readConfigOf } from '../../src/config/config.ts';
import { STATUS_TYPE } from '../../src/core/domain/cloud-event.ts';
import type { LiveMessage } from '../../src/core/domain/live-message.ts';
import { readBody, sendJson, serveHttp } from '../../world/network/serve-http.ts';
import type { Doors } from './doors.ts';

/** The pause before a signal or a status that was not taken is sent again. */
const AGAIN_MS = 500;

/**
 * Opens the doors that need no Google: signals by POST /signal, and statuses by webhook to a receiver in the demo. It
 * passes each status on to the user's own receiver, STATUS_WEBHOOK_URL, if there is one.
 */
export async function openHttp(env: NodeJS.ProcessEnv, port: number): Promise<Doors> {
  const { STATUS_WEBHOOK_URL: theirs, STATUS_WEBHOOK_SECRET: given } = readConfigOf(
    env,
    'STATUS_WEBHOOK_URL',
    'STATUS_WEBHOOK_SECRET',
  );
  const secrets = given ?? [`whsec_${randomBytes(32).toString('base64')}`];
  const verifier = new Webhook(secrets[0] ?? '');
  const takers = new Set<(message: LiveMessage) => void>();
  const stopping = new AbortController();
  let signalUrl = '';

  const passOn = async (body: Buffer, headers: Record<string, string>): Promise<number> => {
    if (theirs === undefined) return 204;
    const kept = ['content-type', 'webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => [
      name,
      headers[name] ?? '',
    ]);
    const about = {
      method: 'POST',
      headers: Object.fromEntries(kept) as Record<string, string>,
      body: new Uint8Array(body),
    };
    return fetch(theirs, { ...about, signal: stopping.signal }).then(
      ({ status }) => status,
      () => 502,
    );
  };
  if (theirs !== undefined) await mustListen(theirs);
  const receiver = await serveHttp(async (request, response) => {
    const body = await readBody(request);
    const headers = request.headers as Record<string, string>;
    let event: { type: string; data: LiveMessage };
    try {
      event = verifier.verify(body, headers) as typeof event;
    } catch (error) {
      return sendJson(response, 401, { error: (error as Error).message });
    }
    const status = await passOn(body, headers);
    if (status >= 200 && status < 300 && event.type === STATUS_TYPE) for (const take of takers) take(event.data);
    response.writeHead(status).end();
  }, port);

  return {
    parts: [['Statuses', `webhooks to ${receiver.url}${theirs === undefined ? '' : ', and on to STATUS_WEBHOOK_URL'}`]],
    howToConnect: () => `Signals:        POST {"orderId": "ORDER_ID"} to ${signalUrl}
                (each run has a new token; with the command line below: expediter signal-token issue)
The statuses:   come by webhook, and go on to your own receiver if STATUS_WEBHOOK_URL names one
                (docs/connect-your-platform.md#statuses-by-webhook has a receiver)`,
    env: { STATUS_WEBHOOK_URL: receiver.url, STATUS_WEBHOOK_SECRET: secrets.join(' ') },
    signalPath: '/signal',
    async signalOrder(orderId) {
      const about = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ orderId }),
      };
      for (;;) {
        const status = await fetch(signalUrl, { ...about, signal: stopping.signal }).then(
          (answer) => answer.status,
          () => 502,
        );
        stopping.signal.throwIfAborted();
        if (status === 204) return;
        // As a platform does.
        if (status < 500) throw new Error(`POST /signal answered ${status}`);
        await sleep(AGAIN_MS, undefined, { signal: stopping.signal });
      }
    },
    async sendSignalsTo(url, { operatorUrl, operatorToken, announce }) {
      const answer = await fetch(`${operatorUrl}/v1/signal-tokens`, {
        method: 'POST',
        headers: { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/json' },
        body: JSON.stringify({ label: 'demo' }),
      });
      if (!answer.ok) throw new Error(`the token for signals could not be issued: ${answer.status}`);
      signalUrl = `${url}?token=${((await answer.json()) as { token: string }).token}`;
      announce('Signals', `POST ${signalUrl}`);
    },
    async readStatuses(take) {
      takers.add(take);
      return async () => void takers.delete(take);
    },
    async stop() {
      stopping.abort(new Error('the demo ends'));
      await receiver.stop();
    },
  };
}

/** @throws Error that names the user's receiver, before any order waits for it */
async function mustListen(url: string): Promise<void> {
  const { hostname, port, protocol } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port || (protocol === 'https:' ? 443 : 80)) });
  try {
    await once(socket, 'connect');
  } catch (error) {
    const { code = 'no connection' } = error as NodeJS.ErrnoException;
    const found = `nothing listens at ${hostname}:${port} (${code})`;
    throw new Error(`STATUS_WEBHOOK_URL: ${found}. Start your receiver first`, { cause: error });
  } finally {
    socket.destroy();
  }
}
