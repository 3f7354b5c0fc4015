/** What a bad neighbour does, and how the others are measured meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { makeToken } from '../../src/core/domain/make-token.ts';
import { moveClock } from '../../world/processes/move-clock.ts';
import { until } from '../../world/processes/until.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { post, statusWebhook } from '../../world/system/start-system.ts';
import { holdBodies } from './hold-bodies.ts';
import { holdRow } from './hold-row.ts';
import { holdSnapshot } from './hold-snapshot.ts';
import type { Load } from './offer-load.ts';
import type { Flood } from './offer-anonymous.ts';
import { allGone, seedOrders, seedPast } from './seed-small-stage.ts';
import type { SmallStage } from './set-small-stage.ts';

/** Measurements of the other locations: milliseconds by kind of work, and the webhooks that were not answered 200. */
export type Measured = { latencies: Record<string, number[]>; refused: number };

export type Scenario = {
  what: string;
  /** The largest allowed ratio of the others' p99 with the bad neighbour to their p99 without it. */
  limit: number;
  /** One, and twenty others, by default. */
  locations?: number;
  /** True if the first location's POS signs its webhooks. */
  firstSigns?: true;
  /** By default it seeds the orders of the others. @param seconds the value of `--seconds` */
  prepare?: (pool: pg.Pool, databaseUrl: string, disturbed: boolean, seconds: number) => Promise<void>;
  round(stage: SmallStage, disturbed: boolean, say: (line: string) => void, seconds: number): Promise<Measured>;
};

const ROUND_S = 13;
/** The first seconds of a round are not measured. */
const WARM_UP_S = 3;
const OTHERS = 'others-';
const FLOOD = 'flood-';
const LOCKED = 'locked-';
const HOGS = 4;
/** The number and size of the bodies with which one location fills a quarter of the budget. */
const BODIES = 16;
const BODY_BYTES = 2 ** 20;

export const SCENARIOS: Record<string, Scenario> = {
  hang: {
    what: "one location's POS hangs; measured at the others: from a push to the request at the POS",
    limit: 1.25,
    locations: 20,
    prepare: async () => {},
    async round(stage, disturbed) {
      if (disturbed) stage.firstPos.behave = () => 'hang';
      return placeOrders(stage, 40);
    },
  },
  flood: {
    what: 'one location sends 2,000 webhooks a second, 20 others 10 each',
    limit: 1.5,
    prepare: async (pool) => {
      await seedOthers(pool, ROUND_S);
      await seedOrders(pool, FLOOD, 2_000 * ROUND_S, () => 'club');
    },
    async round(stage, disturbed, say) {
      const urls = stage.webhookUrls.slice(0, 1);
      const [measured, flood] = await Promise.all([
        sendAsOthers(stage, ROUND_S, say),
        disturbed ? stage.offer({ urls, prefix: FLOOD, perSecond: 2_000, seconds: ROUND_S, warmUpS: 0 }) : undefined,
      ]);
      if (flood !== undefined) say(`  the flood was answered ${JSON.stringify(flood.answers)}`);
      return measured;
    },
  },
  hostile: {
    what: 'one location sends 10 hostile webhooks a second, 20 others 10 good ones each',
    limit: 1.25,
    async round(stage, disturbed, say) {
      const [measured, hostile] = await Promise.all([
        sendAsOthers(stage, ROUND_S, say),
        disturbed ? stage.offerHostility({ perSecond: 10, seconds: ROUND_S }) : undefined,
      ]);
      if (hostile !== undefined) say(`  the hostile were answered ${JSON.stringify(hostile)}`);
      return measured;
    },
  },
  logstop: {
    what: 'nobody reads the log while 20 locations send 10 webhooks a second each',
    limit: 1.5,
    async round(stage, disturbed, say) {
      stage.readLog(!disturbed);
      const measured = await sendAsOthers(stage, ROUND_S, say);
      stage.readLog(true);
      return measured;
    },
  },
  lock: {
    what: "a neighbour's transaction locks an order, whose POS sends webhooks; 20 others send 10 a second each",
    limit: 1.5,
    prepare: async (pool) => {
      await seedOthers(pool, ROUND_S);
      await seedOrders(pool, LOCKED, 1, () => 'club');
    },
    async round(stage, disturbed, say) {
      const holding = disturbed && holdLocked(stage);
      const measured = await sendAsOthers(stage, ROUND_S, say);
      await holding;
      return measured;
    },
  },
  hogs: {
    what: 'four locations send many bodies slowly that never end, 20 others send 10 whole ones a second each',
    limit: 1.5,
    locations: HOGS + 20,
    prepare: (pool) => seedOthers(pool, ROUND_S, HOGS),
    async round(stage, disturbed, say) {
      const count = disturbed ? HOGS * BODIES : 0;
      const stop = holdBodies(count, BODY_BYTES, (nth) => stage.webhookUrls[nth % HOGS]);
      const measured = await sendAsOthers(stage, ROUND_S, say, HOGS);
      await stop();
      return measured;
    },
  },
  anonymous: {
    what: 'somebody sends 10,000 invented tokens a second, 20 others 10 good webhooks each',
    ...besideInventedTokens(() => undefined),
  },
  guesser: {
    what: 'the same through a load balancer, whose connections the service does not close',
    ...besideInventedTokens(targetOf),
  },
  forger: {
    what: 'somebody with one token sends 40 MB a second with wrong signatures, 20 others 10 good webhooks each',
    limit: 1.25,
    firstSigns: true,
    round: (stage, disturbed, say) =>
      besideFlood(stage, disturbed, say, {
        targets: [targetOf(stage)],
        bodyBytes: 1_000_000,
        perSecond: 40,
      }),
  },
  retention: {
    what: 'partitions are dropped and members erased while 20 locations send 10 webhooks a second each',
    limit: 1.25,
    async prepare(pool, databaseUrl, disturbed) {
      await seedPast(pool, 30_000);
      if (disturbed) await moveClock(databaseUrl, { days: 40 });
      await seedOthers(pool, 2 * ROUND_S);
    },
    async round(stage, disturbed, say) {
      // Twice as long, because the jobs start some seconds after the process.
      const measured = await sendAsOthers(stage, 2 * ROUND_S, say);
      if (disturbed) await allGone(stage.pool, say);
      return measured;
    },
  },
  snapshot: {
    what: 'a transaction stays open during all of --seconds, at 500 webhooks a second',
    limit: 1.5,
    prepare: (pool, _, __, seconds) => seedOrders(pool, OTHERS, 500 * seconds, (nth) => `club-${(nth % 20) + 2}`),
    async round(stage, disturbed, say, seconds) {
      const snapshot = disturbed ? holdSnapshot(() => stage.databaseUrl) : undefined;
      try {
        // The cost of an old snapshot grows with time, so only the last third is measured.
        const load = { urls: stage.webhookUrls.slice(1), prefix: OTHERS, perSecond: 500, seconds };
        const measured = await offerAll(stage, { ...load, warmUpS: (2 / 3) * seconds }, say);
        await until(async () => (await stage.pool.query('SELECT FROM outbox LIMIT 1')).rowCount === 0, 60_000);
        return { ...measured, latencies: { ...measured.latencies, live: await liveLags(stage.pool, seconds / 3) } };
      } finally {
        await snapshot?.release();
      }
    },
  },
};

/** @returns milliseconds from each push to the request at the POS, at all locations except the first */
async function placeOrders(stage: SmallStage, perSecond: number): Promise<Measured> {
  const pushedAt = new Map<string, number>();
  const latencies: number[] = [];
  const began = performance.now();
  let reached = 0;
  stage.pos.onTicket = ({ serviceOrderId }) => {
    const at = pushedAt.get(serviceOrderId) ?? 0;
    reached += 1;
    if (at - began >= WARM_UP_S * 1_000) latencies.push(performance.now() - at);
  };
  const pushes: Promise<void>[] = [];
  for (let nth = 0; nth < perSecond * ROUND_S; nth += 1) {
    await sleep(Math.max(0, began + (nth * 1_000) / perSecond - performance.now()));
    const serviceOrderId = `order-${nth}`;
    const locationId = stage.locationIds[nth % stage.locationIds.length] ?? '';
    stage.platform.orders.set(serviceOrderId, sampleOrder({ serviceOrderId, locationId }));
    pushedAt.set(serviceOrderId, performance.now());
    pushes.push(stage.signal(serviceOrderId));
  }
  await Promise.all(pushes);
  await sleep(2_000);
  const expected = [...pushedAt.keys()].filter((_, nth) => nth % stage.locationIds.length !== 0).length;
  if (reached !== expected) throw new Error(`${reached} of ${expected} orders reached the POS`);
  return { latencies: { placements: latencies }, refused: 0 };
}

async function holdLocked(stage: SmallStage): Promise<void> {
  const order = `${LOCKED}0`;
  const client = await stage.pool.connect();
  try {
    await holdRow(client, order, ROUND_S, () =>
      post(stage.webhookUrls[0] ?? '', statusWebhook({ serviceOrderId: order, status: 'received' })),
    );
  } finally {
    client.release(true);
  }
}

/** @returns milliseconds from commit to topic, of the messages that were committed in the last `lastS` seconds */
async function liveLags(pool: pg.Pool, lastS: number): Promise<number[]> {
  const { rows } = await pool.query<{ lag: number }>(
    `SELECT 1000 * extract(epoch FROM published_at - applied_at)::float8 AS lag FROM live_messages
     WHERE applied_at > (SELECT max(applied_at) FROM live_messages) - make_interval(secs => $1)`,
    [lastS],
  );
  return rows.map(({ lag }) => lag);
}

function besideInventedTokens(greeting: (stage: SmallStage) => string | undefined): Omit<Scenario, 'what'> {
  return {
    limit: 1.25,
    round: (stage, disturbed, say) =>
      besideFlood(stage, disturbed, say, {
        // The tokens have a valid prefix and checksum, so only Postgres can tell that they were never issued.
        targets: Array.from({ length: 1_000 }, () => `/webhook/standard/club-2?token=${makeToken('exw_')}`),
        bodyBytes: 0,
        perSecond: 10_000,
        greeting: greeting(stage),
      }),
  };
}

/** The path and query of the first location's webhook URL. */
function targetOf({ webhookUrls, url }: SmallStage): string {
  return String(webhookUrls[0]).slice(url.length);
}

async function besideFlood(
  stage: SmallStage,
  disturbed: boolean,
  say: (line: string) => void,
  flood: Omit<Flood, 'port' | 'seconds'>,
): Promise<Measured> {
  const [measured, answers] = await Promise.all([
    sendAsOthers(stage, ROUND_S, say),
    disturbed ? stage.offerFlood({ ...flood, seconds: ROUND_S }) : undefined,
  ]);
  if (answers !== undefined) {
    const { rows } = await stage.pool.query<{ size: string }>(
      `SELECT pg_size_pretty(sum(pg_total_relation_size(inhrelid))) AS size FROM pg_inherits
       WHERE inhparent = 'webhooks'::regclass`,
    );
    say(`  the flood was answered ${JSON.stringify(answers)}; webhooks take ${rows[0]?.size}`);
  }
  return measured;
}

/** Inserts the orders for the webhooks of the other locations, which are all except the first `bad` locations. */
async function seedOthers(pool: pg.Pool, seconds: number, bad = 1): Promise<void> {
  await seedOrders(pool, OTHERS, 20 * 10 * seconds, (nth) => `club-${(nth % 20) + bad + 1}`);
}

export const seedRound = (pool: pg.Pool): Promise<void> => seedOthers(pool, ROUND_S);

/** Sends webhooks at a steady pace from all locations except the first `bad` locations. */
async function sendAsOthers(
  stage: SmallStage,
  seconds: number,
  say: (line: string) => void,
  bad = 1,
): Promise<Measured> {
  const urls = stage.webhookUrls.slice(bad);
  return offerAll(stage, { urls, prefix: OTHERS, perSecond: 200, seconds, warmUpS: WARM_UP_S }, say);
}

async function offerAll(stage: SmallStage, load: Load, say: (line: string) => void): Promise<Measured> {
  const { answers, latencies } = await stage.offer(load);
  const { 200: _taken, ...others } = answers;
  const refused = Object.values(others).reduce((sum, count) => sum + count, 0);
  if (refused > 0) say(`  the others were answered ${JSON.stringify(answers)}`);
  return { latencies: { webhooks: latencies }, refused };
}
