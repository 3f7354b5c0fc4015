/** What a bad neighbour does, and how the others are measured meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { RANK_END, RANK_SENT } from '../src/core/domain/lifecycle.ts';
import { moveClock } from '../test/support/move-clock.ts';
import { sampleOrder } from '../test/support/sample-order.ts';
import type { SmallStage } from './set-small-stage.ts';

export type Scenario = {
  what: string;
  /** The largest allowed ratio of the others' p99 with the neighbour to the one without. */
  limit: number;
  locations: number;
  prepare?: (pool: pg.Pool, databaseUrl: string, disturbed: boolean) => Promise<void>;
  /** @returns milliseconds, of the others only */
  round(stage: SmallStage, disturbed: boolean, say: (line: string) => void): Promise<number[]>;
};

const ROUND_S = 13;
/** The first seconds, which do not count. */
const WARM_UP_S = 3;
const OTHERS = 'others-';
const FLOOD = 'flood-';

export const SCENARIOS: Record<string, Scenario> = {
  hang: {
    what: "one location's POS hangs: from a push to the POS's request at the others",
    limit: 1.25,
    locations: 20,
    async round(stage, disturbed) {
      if (disturbed) stage.firstPos.behave = () => 'hang';
      return placeOrders(stage, 40);
    },
  },
  flood: {
    what: 'one location sends 2,000 webhooks a second, 20 others 10 each',
    limit: 1.5,
    locations: 21,
    prepare: async (pool) => {
      await seedOrders(pool, OTHERS, 20 * 10 * ROUND_S, (nth) => `club-${(nth % 20) + 2}`);
      await seedOrders(pool, FLOOD, 2_000 * ROUND_S, () => 'club');
    },
    async round(stage, disturbed, say) {
      const urls = stage.webhookUrls.slice(0, 1);
      const [latencies, flood] = await Promise.all([
        sendAsOthers(stage, ROUND_S, say),
        disturbed ? stage.offer({ urls, prefix: FLOOD, perSecond: 2_000, seconds: ROUND_S, warmUpS: 0 }) : undefined,
      ]);
      if (flood !== undefined) say(`  the flood was answered ${JSON.stringify(flood.answers)}, ${flood.held} held`);
      return latencies;
    },
  },
  hostile: {
    what: 'one location sends 10 hostile webhooks a second, 20 others 10 good ones each',
    limit: 1.25,
    locations: 21,
    prepare: (pool) => seedOrders(pool, OTHERS, 20 * 10 * ROUND_S, (nth) => `club-${(nth % 20) + 2}`),
    async round(stage, disturbed, say) {
      const [latencies, hostile] = await Promise.all([
        sendAsOthers(stage, ROUND_S, say),
        disturbed ? stage.offerHostility({ perSecond: 10, seconds: ROUND_S }) : undefined,
      ]);
      if (hostile !== undefined) say(`  the hostile were answered ${JSON.stringify(hostile)}`);
      return latencies;
    },
  },
  logstop: {
    what: 'nobody reads the log while 20 locations send 10 webhooks a second each',
    limit: 1.5,
    locations: 21,
    prepare: (pool) => seedOrders(pool, OTHERS, 20 * 10 * ROUND_S, (nth) => `club-${(nth % 20) + 2}`),
    async round(stage, disturbed, say) {
      stage.readLog(!disturbed);
      const latencies = await sendAsOthers(stage, ROUND_S, say);
      stage.readLog(true);
      return latencies;
    },
  },
  retention: {
    what: 'partitions are dropped and members erased while 20 locations send 10 webhooks a second each',
    limit: 1.25,
    locations: 21,
    async prepare(pool, databaseUrl, disturbed) {
      await seedPast(pool, 30_000);
      if (disturbed) await moveClock(databaseUrl, { days: 40 });
      await seedOrders(pool, OTHERS, 20 * 10 * 2 * ROUND_S, (nth) => `club-${(nth % 20) + 2}`);
    },
    async round(stage, disturbed, say) {
      // Twice as long, since the jobs begin some seconds after the process.
      const latencies = await sendAsOthers(stage, 2 * ROUND_S, say);
      if (disturbed) await allGone(stage.pool, say);
      return latencies;
    },
  },
};

/** @returns milliseconds from each push to the request at the POS, at every location but the first */
async function placeOrders(stage: SmallStage, perSecond: number): Promise<number[]> {
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
  return latencies;
}

/** Inserts orders as if they had been placed and sent. */
async function seedOrders(
  pool: pg.Pool,
  prefix: string,
  count: number,
  locationOf: (nth: number) => string,
): Promise<void> {
  const nths = Array.from({ length: count }, (_, nth) => nth);
  await pool.query(
    `INSERT INTO orders (service_order_id, location_id, integration, fulfillment, rank, sequence)
     SELECT id, location_id, 'standard', 'pickup', ${RANK_SENT}, 2 FROM unnest($1::text[], $2::text[]) AS o(id, location_id)`,
    [nths.map((nth) => `${prefix}${nth}`), nths.map(locationOf)],
  );
}

/** Inserts old orders with all that is kept of them: contents, histories, webhooks of three days. */
async function seedPast(pool: pg.Pool, count: number): Promise<void> {
  await pool.query(
    `WITH past AS (
       SELECT nth, 'past-' || nth AS id, gen_random_uuid() AS webhook_id, current_date + nth % 3 - 1 AS day
       FROM generate_series(1, $1::int) AS nth
     ), o AS (
       INSERT INTO orders (service_order_id, location_id, integration, fulfillment, rank, sequence, ended_at)
       SELECT id, 'club', 'standard', 'pickup', ${RANK_END}, 7, now() FROM past
     ), c AS (
       INSERT INTO order_contents (service_order_id, contents)
       SELECT id, jsonb_build_object('member', jsonb_build_object('name', repeat('x', 500))) FROM past
     ), e AS (
       INSERT INTO status_events (service_order_id, webhook_id, status, native_status, outcome, sequence)
       SELECT id, webhook_id, 'completed', 'COMPLETED', 'applied', 7 FROM past
     )
     INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, body, events, outcome)
     SELECT day, 'club', webhook_id, 'standard', now(), '{}', convert_to(repeat('x', 400), 'UTF8'), 1, 'applied'
     FROM past`,
    [count],
  );
  await pool.query('ANALYZE');
}

async function allGone(pool: pg.Pool, say: (line: string) => void): Promise<void> {
  const { rows } = await pool.query<{ contents: number; webhooks: number }>(
    `SELECT (SELECT count(*)::int FROM order_contents) AS contents,
            (SELECT count(*)::int FROM webhooks WHERE location_id = 'club') AS webhooks`,
  );
  say(`  left of the past: ${JSON.stringify(rows[0])}`);
}

/** Sends two hundred webhooks a second from every location but the first. @returns milliseconds to their answers */
async function sendAsOthers(stage: SmallStage, seconds: number, say: (line: string) => void): Promise<number[]> {
  const urls = stage.webhookUrls.slice(1);
  const load = { urls, prefix: OTHERS, perSecond: 200, seconds, warmUpS: WARM_UP_S };
  const { answers, latencies } = await stage.offer(load);
  if (Object.keys(answers).some((status) => status !== '200'))
    say(`  the others were answered ${JSON.stringify(answers)}`);
  return latencies;
}
