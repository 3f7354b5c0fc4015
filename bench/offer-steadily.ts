/**
 * Sends signed webhooks from a process of its own. Its first message says what to send, answered when all is signed.
 * The second, whatever it is, starts it, and is answered with the result.
 */
import { once } from 'node:events';
import { postAtPace, type Answers } from '../test/support/post-at-pace.ts';
import type { Sender } from './prepare-bench-database.ts';
import { MOVES, signRequest, type SignedRequest } from './sign-request.ts';
import { percentile } from './summarize.ts';

export type Steady = {
  /** The service's URL. */
  url: string;
  senders: readonly Sender[];
  perSecond: number;
  /** The number of webhooks. Each moves one order, from the first on. */
  webhooks: number;
  /** The number of orders, which all make their next move once each has made one; by default each makes one alone. */
  orders?: number;
  /** The number of the first webhook; 0 by default. */
  from?: number;
};

/**
 * The 99th percentiles, in milliseconds from a webhook's due time: `lateMs` to its sending, `p99Ms` to its answer, if
 * that was 200.
 */
export type Offered = { answers: Answers; lateMs: number; p99Ms: number };

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
  return { answers, lateMs: percentile(late, 0.99), p99Ms: percentile(took, 0.99) };
}

process.once('message', ({ url, senders, perSecond, webhooks, orders = Infinity, from = 0 }: Steady) => {
  const requests = Array.from({ length: webhooks }, (_, nth) =>
    signRequest(senders, (from + nth) % orders, MOVES[Math.floor((from + nth) / orders)] ?? 'completed'),
  );
  process.send?.('signed');
  void once(process, 'message').then(async () => process.send?.(await offerSteadily(url, requests, perSecond)));
});
