/** A bridge between us and a POS, as a vendor's engineer writes one by docs/connect-your-pos.md; and its bad habits. */
import { createHmac, randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CanonicalOrder } from '../../../src/core/domain/order.ts';
import { readBody, sendJson, serveHttp } from '../../../world/network/serve-http.ts';

/** What is signed, and what is sent. */
type Written = { signed: string; sent: string };

/** What a bridge does in another way than a good one. */
export type Habits = {
  /** The id of the ticket, for the nth request of an order. */
  ticketOf?: (nth: number) => string | Promise<string>;
  /** Takes an order whatever its signature. */
  trusts?: boolean;
  /** How often a status is sent when somebody does something, each time as another webhook. */
  tickets?: number;
  answer?: (response: ServerResponse, about: { nth: number; ticket: string }) => void | Promise<void>;
  /** What is sent when somebody at the till does something; by default that. */
  does?: (status: string) => readonly string[];
  names?: (order: CanonicalOrder, ticket: string) => { thirdPartyReference?: string; id?: string };
  write?: (event: object) => Written;
  sign?: (secret: string, id: string, seconds: number, signed: string) => string;
  clock?: () => number;
  url?: (webhookUrl: string) => string;
  /** How often a webhook is sent that is not answered 200. */
  attempts?: number;
};

export type Bridge = {
  ordersUrl: string;
  /** Where it sends statuses; known once the location has a token. */
  webhookUrl: string;
  /** Somebody at the till does something with the last order. */
  press(status: string): void;
  /** Resolves once everything has been sent. */
  stop(): Promise<void>;
};

const ATTEMPTS = 20;
const PAUSE_MS = 400;

/** @param secret of the location's settings */
export async function startBridge(secret: string, habits: Habits = {}): Promise<Bridge> {
  const {
    ticketOf = () => 'ticket-1',
    trusts = false,
    tickets = 1,
    answer = (response, { ticket }) => sendJson(response, 200, { providerOrderId: ticket }),
    does = (status) => [status],
    names = ({ serviceOrderId }, ticket) => ({ thirdPartyReference: serviceOrderId, id: ticket }),
    write = (event) => ({ signed: JSON.stringify(event), sent: JSON.stringify(event) }),
    sign = signStandard,
    clock = Date.now,
    url = (webhookUrl) => webhookUrl,
    attempts = ATTEMPTS,
  } = habits;
  let taken: { order: CanonicalOrder; ticket: string } | undefined;
  let requests = 0;
  let sending = Promise.resolve();
  const stopping = new AbortController();

  const server = await serveHttp(async (request, response) => {
    const body = (await readBody(request)).toString();
    const { 'webhook-id': id = '', 'webhook-timestamp': seconds, 'webhook-signature': given } = request.headers;
    if (!trusts && given !== signStandard(secret, String(id), Number(seconds), body)) {
      return sendJson(response, 401, { reason: 'wrong signature' });
    }
    const order = JSON.parse(body) as CanonicalOrder;
    requests += 1;
    const nth = requests;
    const ticket = await ticketOf(nth);
    taken = { order, ticket };
    await answer(response, { nth, ticket });
  });

  async function send(status: string): Promise<void> {
    if (taken === undefined) throw new Error('there is no order yet');
    const { signed, sent } = write({
      eventType: 'order.status',
      order: { ...names(taken.order, taken.ticket), status },
    });
    const id = randomUUID();
    for (let attempt = 1; attempt <= attempts && !stopping.signal.aborted; attempt += 1) {
      const seconds = Math.floor(clock() / 1000);
      const headers = {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': String(seconds),
        'webhook-signature': sign(secret, id, seconds, signed),
      };
      const answered = await fetch(url(bridge.webhookUrl), { method: 'POST', headers, body: sent });
      await answered.arrayBuffer();
      if (answered.status !== 500) return;
      await sleep(PAUSE_MS);
    }
  }

  const bridge: Bridge = {
    ordersUrl: `${server.url}/orders`,
    webhookUrl: '',
    press(status) {
      for (const each of does(status)) {
        for (let nth = 0; nth < tickets; nth += 1) sending = sending.then(() => send(each));
      }
    },
    async stop() {
      stopping.abort();
      await sending;
      await server.stop();
    },
  };
  return bridge;
}

/** As https://www.standardwebhooks.com has it. */
export function signStandard(secret: string, id: string, seconds: number, signed: string): string {
  return `v1,${hmac(Buffer.from(secret.slice('whsec_'.length), 'base64'), `${id}.${seconds}.${signed}`)}`;
}

export function hmac(key: Buffer | string, text: string, encoding: 'base64' | 'hex' = 'base64'): string {
  return createHmac('sha256', key).update(text).digest(encoding);
}
