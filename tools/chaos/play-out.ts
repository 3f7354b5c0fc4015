import type { Message } from '../../world/pubsub/queue-messages.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { memberStateAt, statusAt } from '../../src/core/domain/lifecycle.ts';
import { countAnswers } from './check-answers.ts';
import { checkBooks, type Books, type Broken } from './check-books.ts';
import type { Phones } from './follow-by-phone.ts';
import type { History } from './history.ts';
import { probeEndpoint, type Probe, type Span } from './probe-endpoint.ts';
import type { Script } from './script-order.ts';
import { serveOrders, type Served } from './serve-orders.ts';
import type { StageDatabase } from './faulty-postgres.ts';
import type { Stage } from './set-stage.ts';
import { resolveDoubts, settle, telephone } from './settle.ts';

export type Played = {
  served: Served;
  probe: Probe;
  /** The time without faults, until the probe stopped. */
  calm: Span;
  books: Books;
  broken: Broken[];
  /** A sentence for each thing that did not settle, and for each broken promise of the books. */
  complaints: string[];
  /** From commit to publication of a live message, in the calm after the faults; null if there were no messages. */
  liveLagP99Ms: number | null;
  /** The counts of all results, for people. */
  words: string;
};

/** Time to settle: a lease, the minute before a missing ticket counts as absent, the deadline, and the sweeps. */
const SETTLE_S = 200;
/** Seconds until the last sender has its answer. */
const SENDERS_S = 300;
/** Seconds without faults before the end, so that the recovery from the last fault can be measured. */
const CALM_S = 5;

/** Plays the scripts while `disturb` injects faults, waits until all has settled, and checks the books. */
export async function playOut(about: {
  stage: Stage<StageDatabase>;
  scripts: readonly Script[];
  ordersPerSecond: number;
  history: History;
  /** Resolves when all faults are over. */
  disturb: (served: Played['served']) => Promise<void>;
  phones?: Phones;
  /** The orders end with the faults, even if scripts are left. */
  endsWithFaults?: boolean;
  print: (line: string) => void;
}): Promise<Played> {
  const { stage, scripts, ordersPerSecond, history, phones, print, endsWithFaults = false } = about;
  const seconds = endsWithFaults ? 0 : scripts.length / ordersPerSecond;
  const closed = new AbortController();
  const closing = new AbortController();
  let probe: Probe | undefined;
  let pool: pg.Pool | undefined;
  try {
    history.begin();
    const served = serveOrders({
      stage,
      scripts,
      ordersPerSecond,
      history,
      onPlaced: (order) => phones?.placed(order),
      signal: closing.signal,
      closed: closed.signal,
    });
    const [first] = stage.kitchens;
    if (first === undefined) throw new Error('there is no kitchen');
    probe = probeEndpoint(first, history, served);
    await about.disturb(served);
    if (endsWithFaults) closed.abort();
    const calmFrom = new Date();
    const calmAt = history.now();
    await sleep(Math.max(CALM_S, seconds + CALM_S - history.now() / 1_000) * 1_000);
    const calm = [calmAt, history.now()] as const;
    const calmUntil = new Date();
    await probe.stop();
    print('all faults are over; waiting until everything has settled');
    await ended(served);

    pool = new pg.Pool({ connectionString: stage.databaseUrl, max: 4 });
    pool.on('error', () => {});
    const complaints: string[] = [];
    // Repeated, because an order that an operator resolved may be sent and be in doubt again.
    for (let isOver = false; !isOver && complaints.length === 0;) {
      const open = await settle(pool, stage.pubsub, served.accepted, SETTLE_S);
      if (open !== undefined) complaints.push(`not settled after ${SETTLE_S} s: ${JSON.stringify(open)}`);
      const calls = await telephone(pool, stage.kitchens, served, history);
      if (calls > 0) print(`an operator phoned about ${calls} orders`);
      const doubts = await resolveDoubts(pool, stage.kitchens, history);
      if (doubts > 0) print(`an operator settled ${doubts} orders in doubt`);
      const { waited } = await ended(served);
      isOver = calls + doubts === 0 && !waited;
    }
    const live = asReaders(stage.published());
    await phones?.untilTold(live);
    const { books, broken } = await checkBooks({ pool, served, kitchens: stage.kitchens, live, phones: phones?.all });
    complaints.push(...broken.map(({ count, order, why }) => `${count}: ${order ?? 'a probe'}: ${why}`));
    const liveLagP99Ms = await lagOf(pool, calmFrom, calmUntil);
    const answered = [...countAnswers(served.answers)].map(([status, count]) => `answered ${status} ${count}`);
    const words = `${answered.join(', ')}, ${await summary(pool)}`;
    return { served, probe, calm, books, broken, complaints, liveLagP99Ms, words };
  } finally {
    closed.abort();
    closing.abort();
    phones?.stop();
    await probe?.stop();
    await pool?.end();
  }
}

/** Waits for the senders. Patient ones repeat a webhook for as long as it is refused, which a bad migration makes for ever. */
async function ended<Result>(served: { finished(): Promise<Result> }): Promise<Result> {
  const over = new AbortController();
  const late = sleep(SENDERS_S * 1_000, undefined, { signal: over.signal }).then(() => {
    throw new Error(`senders still repeat what was refused, ${SENDERS_S} s after the last fault`);
  });
  try {
    return await Promise.race([served.finished(), late]);
  } finally {
    over.abort();
    await late.catch(() => {});
  }
}

async function lagOf(pool: pg.Pool, from: Date, until: Date): Promise<number | null> {
  const { rows } = await pool.query<{ lag: number | null }>(
    `SELECT round(1000 * percentile_disc(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM published_at - applied_at)))::int AS lag
     FROM live_messages WHERE applied_at BETWEEN $1 AND $2`,
    [from, until],
  );
  return rows[0]?.lag ?? null;
}

async function summary(pool: pg.Pool): Promise<string> {
  const { rows: orders } = await pool.query<{ rank: number; count: number }>(
    'SELECT rank, count(*)::int AS count FROM orders GROUP BY 1 ORDER BY 1',
  );
  const { rows } = await pool.query<{ what: string; count: number }>(
    `SELECT 'webhooks ' || outcome AS what, count(*)::int AS count FROM webhooks GROUP BY 1
     UNION ALL SELECT concat_ws(': ', 'placements ' || state, regexp_replace(problem, 'https?://[^ ]+', 'URL')), count(*)::int
               FROM placements GROUP BY 1
     UNION ALL SELECT concat_ws(' ', 'attempts', NULLIF(call, 'createOrder'), outcome), count(*)::int
               FROM placement_attempts GROUP BY 1
     UNION ALL SELECT 'cancellations ' || state, count(*)::int FROM cancellations GROUP BY 1
     ORDER BY 1`,
  );
  const byStep = orders.map(({ rank, count }) => ({
    what: `orders ${statusAt(rank) ?? memberStateAt(rank, 'pickup')}`,
    count,
  }));
  return [...byStep, ...rows].map(({ what, count }) => `${what} ${count}`).join(', ');
}

/** Without ordering keys, readers order an order's messages by their sequence. */
function asReaders(live: readonly Message[]): readonly Message[] {
  if (live.some(({ orderingKey }) => orderingKey !== '')) return live;
  const sequenceOf = ({ attributes }: Message): number => Number(attributes['sequence']);
  return live
    .map((message) => ({ ...message, orderingKey: message.attributes['serviceOrderId'] ?? '' }))
    .toSorted((a, b) => sequenceOf(a) - sequenceOf(b));
}
