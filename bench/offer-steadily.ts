/**
 * Sends signed webhooks from a process of its own. Its first message says what to send, answered when all is signed.
 * The second, whatever it is, starts it, and is answered with the result.
 */
import { once } from 'node:events';
import { Agent } from 'node:http';
import { post } from './post.ts';
import type { Sender } from './prepare-bench-database.ts';
import { signRequest, type SignedRequest } from './sign-request.ts';
import { percentile } from './summarize.ts';

export type Steady = {
  /** The service's URL. */
  url: string;
  senders: readonly Sender[];
  perSecond: number;
  /** The number of webhooks. The n-th moves the n-th order, from 0 on. */
  webhooks: number;
};

export type Offered = {
  /** Answers by status; `none`: the connection broke. */
  answers: Record<string, number>;
  /** Webhooks that were due and never sent, since too many waited for their answer. */
  held: number;
  /** Milliseconds from a webhook's due time to its sending, the 99th percentile. */
  lateMs: number;
};

const SOCKETS = 1_000;
const TICK_MS = 2;

/** Sends in an open loop: at its pace, whatever the answers. */
async function offerSteadily(url: string, requests: readonly SignedRequest[], perSecond: number): Promise<Offered> {
  const agent = new Agent({ keepAlive: true, maxSockets: SOCKETS });
  const offered: Omit<Offered, 'lateMs'> = { answers: {}, held: 0 };
  const late: number[] = [];
  const sending: Promise<void>[] = [];
  let underWay = 0;

  const send = async (signed: SignedRequest): Promise<void> => {
    const status = await post(url + signed.path, agent, signed);
    offered.answers[status] = (offered.answers[status] ?? 0) + 1;
    underWay -= 1;
  };

  const began = performance.now();
  let nth = 0;
  await new Promise<void>((done) => {
    const timer = setInterval(() => {
      const passed = performance.now() - began;
      for (; nth < requests.length && (nth * 1_000) / perSecond <= passed; nth += 1) {
        const next = requests[nth];
        if (next === undefined || underWay >= SOCKETS) {
          offered.held += 1;
          continue;
        }
        underWay += 1;
        late.push(performance.now() - began - (nth * 1_000) / perSecond);
        sending.push(send(next));
      }
      if (nth < requests.length) return;
      clearInterval(timer);
      done();
    }, TICK_MS);
  });
  await Promise.all(sending);
  agent.destroy();
  return { ...offered, lateMs: percentile(late, 0.99) };
}

process.once('message', ({ url, senders, perSecond, webhooks }: Steady) => {
  const requests = Array.from({ length: webhooks }, (_, nth) => signRequest(senders, nth, 'received'));
  process.send?.('signed');
  void once(process, 'message').then(async () => process.send?.(await offerSteadily(url, requests, perSecond)));
});
