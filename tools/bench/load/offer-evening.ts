/**
 * Plays members, POS systems and tills, from its own process. A message to the process is the `Evening`, and is answered
 * with the result at the end.
 */
import type { Status } from '../../../src/core/domain/lifecycle.ts';
import { postAtPace, type Answers } from '../../../world/network/post-at-pace.ts';
import type { Sender } from '../stage/prepare-bench-database.ts';
import { pushSignals } from './push-signals.ts';
import { signRequest, type SignedRequest } from './sign-request.ts';
import { percentile } from '../measure/summarize.ts';

export type Evening = {
  /** The service's URL. */
  url: string;
  senders: readonly Sender[];
  seconds: number;
  ordersPerSecond: number;
  /** Webhooks per second. Some are about orders. The others are about the tills' own sales. */
  webhooksPerSecond: number;
  /** When Postgres's clock is moved ahead, and by how much. Signatures must have the time of that clock. */
  jump?: { atS: number; days: number };
  /** The number of the first order. */
  first?: number;
  /** The statuses that an order's webhooks report. */
  moves: readonly Status[];
  /** Whether the first webhook of an order names only the POS id. The second names both ids, so the first is parked. */
  early: boolean;
};

export type EveningResult = {
  webhooks: Answers;
  signals: Answers;
  /** For each third of the run: the p99 from due time to answer. The first tenth of the first third is left out. */
  p99Ms: number[];
};

/** Seconds between two moves of an order, and between its signal and its first move. */
const STEP_S = 2;
const THIRDS = 3;
const START = 0.1;

/** Makes the nth webhook: the next move of an order, or a till's sale if no order has a move then. */
function webhook(about: Evening, nth: number): SignedRequest {
  const { senders, ordersPerSecond, webhooksPerSecond, jump, first = 0 } = about;
  const perOrder = Math.floor(webhooksPerSecond / ordersPerSecond);
  const [slot, place] = [Math.floor(nth / perOrder), nth % perOrder];
  const atS = slot / ordersPerSecond;
  const at = Date.now() + (jump !== undefined && atS >= jump.atS ? jump.days * 86_400_000 : 0);
  const order = slot - (place + 1) * STEP_S * ordersPerSecond;
  const move = about.moves[place];
  if (move === undefined || order < 0) {
    const sale = { thirdPartyReference: undefined, id: `till-${nth}` };
    return signRequest(senders, nth, 'completed', sale, at);
  }
  const ids = about.early && place === 0 ? { thirdPartyReference: undefined } : {};
  return signRequest(senders, first + order, move, ids, at);
}

async function offerWebhooks(about: Evening): Promise<Omit<EveningResult, 'signals'>> {
  const { seconds, webhooksPerSecond: perSecond } = about;
  const latencies: number[][] = Array.from({ length: THIRDS }, () => []);
  const began = performance.now();
  const webhooks = await postAtPace(
    { count: seconds * perSecond, perSecond },
    (nth) => {
      const { path, ...posted } = webhook(about, nth);
      return { url: about.url + path, ...posted };
    },
    (_, dueAt) => {
      const thirds = ((dueAt - began) / 1_000 / seconds) * THIRDS;
      if (thirds >= START) latencies[Math.floor(thirds)]?.push(performance.now() - dueAt);
    },
  );
  return { webhooks, p99Ms: latencies.map((each) => percentile(each, 0.99)) };
}

async function play(about: Evening): Promise<EveningResult> {
  const { url, ordersPerSecond: perSecond, seconds, first = 0 } = about;
  const pushing = pushSignals(url, { first, perSecond, seconds });
  const [offered, { answers }] = await Promise.all([offerWebhooks(about), pushing]);
  return { ...offered, signals: answers };
}

process.on('message', (about: Evening) => {
  void play(about).then((result) => process.send?.(result));
});
