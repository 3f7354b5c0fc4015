/**
 * Sends signed webhooks from its own process. The first message to the process is the `Steady`, and is answered when
 * all webhooks are signed. Any second message starts the sending, and is answered with the result.
 */
import { once } from 'node:events';
import { postAtPace, type Answers } from '../../../world/network/post-at-pace.ts';
import type { Sender } from '../stage/prepare-bench-database.ts';
import { MOVES, signRequest, type SignedRequest } from './sign-request.ts';
import { percentile } from '../measure/summarize.ts';

export type Steady = {
  /** The service's URL. */
  url: string;
  senders: readonly Sender[];
  perSecond: number;
  /** The number of webhooks. Each moves one order; the orders take turns by their numbers. */
  webhooks: number;
  /** The number of orders. When each has moved once, all move again. By default, each webhook has its own order. */
  orders?: number;
  /** The number of the first webhook; 0 by default. */
  from?: number;
};

/**
 * In milliseconds from a webhook's due time: `lateMs` until it was sent, the 99th percentile. The others are
 * percentiles until it was answered 200, and `longestMs` is the longest.
 */
export type Offered = { answers: Answers; lateMs: number; p95Ms: number; p99Ms: number; longestMs: number };

async function offerSteadily(url: string, requests: readonly SignedRequest[], perSecond: number): Promise<Offered> {
  const late: number[] = [];
  const took: number[] = [];
  const answers = await postAtPace(
    { count: requests.length, perSecond },
    (nth, dueAt) => {
      const { path, ...posted } = requests[nth] as SignedRequest;
      late.push(performance.now() - dueAt);
      return { url: url + path, ...posted };
    },
    (status, dueAt) => {
      if (status === '200') took.push(performance.now() - dueAt);
    },
  );
  return {
    answers,
    lateMs: percentile(late, 0.99),
    p95Ms: percentile(took, 0.95),
    p99Ms: percentile(took, 0.99),
    longestMs: percentile(took, 1),
  };
}

process.once('message', ({ url, senders, perSecond, webhooks, orders = Infinity, from = 0 }: Steady) => {
  const requests = Array.from({ length: webhooks }, (_, nth) =>
    signRequest(senders, (from + nth) % orders, MOVES[Math.floor((from + nth) / orders)] ?? 'completed'),
  );
  process.send?.('signed');
  void once(process, 'message').then(async () => process.send?.(await offerSteadily(url, requests, perSecond)));
});
