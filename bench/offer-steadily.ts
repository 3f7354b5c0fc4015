/**
 * A sender of signed webhooks in a process of its own. Forked; its first message says what to send, and it answers once
 * all is signed. At the second, whatever that is, it begins, and answers how it went.
 */
import { once } from 'node:events';
import { Agent } from 'node:http';
import { post } from './post.ts';
import type { Sender } from './prepare-bench-database.ts';
import { signRequest, type SignedRequest } from './sign-request.ts';
import { percentile } from './summarize.ts';

export type Steady = {
  /** Of the service. */
  url: string;
  senders: readonly Sender[];
  perSecond: number;
  /** The n-th webhook moves the n-th order, from 0 on. */
  webhooks: number;
};

export type Offered = {
  /** How many answers of each status; `none`: the connection broke. */
  answers: Record<string, number>;
  /** Due, and never sent, since too many waited for their answer. */
  held: number;
  /** Milliseconds from when a webhook was due until it was sent, of the latest hundredth at the least. */
  lateMs: number;
};

const SOCKETS = 1_000;
const TICK_MS = 2;

/** An open loop: it sends at its pace whatever comes back. */
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
