/**
 * What one bad neighbour costs the others: the same load with and without it, in turn, each round on a fresh database
 * and a fresh process. What counts is the ratio of the others' p99.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { sampleOrder } from '../test/support/sample-order.ts';
import { moveClock } from '../test/support/move-clock.ts';
import { startPostgres, type Postgres } from '../test/support/start-postgres.ts';
import { setSmallStage, type SmallStage } from './set-small-stage.ts';

type Scenario = {
  what: string;
  /** The others' p99 with the neighbour is at most so many times the one without it. */
  limit: number;
  locations: number;
  prepare?: (pool: pg.Pool, databaseUrl: string, disturbed: boolean) => Promise<void>;
  /** @returns milliseconds, of the others alone */
  round(stage: SmallStage, disturbed: boolean): Promise<number[]>;
};

const ROUND_S = 13;
/** The first of them, which do not count. */
const WARM_UP_S = 3;
const OTHERS = 'others-';
const FLOOD = 'flood-';

const SCENARIOS: Record<string, Scenario> = {
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
    async round(stage, disturbed) {
      const [first = '', ...others] = stage.webhookUrls;
      const [offered, flood] = await Promise.all([
        stage.offer({ urls: others, prefix: OTHERS, perSecond: 200, seconds: ROUND_S, warmUpS: WARM_UP_S }),
        disturbed
          ? stage.offer({ urls: [first], prefix: FLOOD, perSecond: 2_000, seconds: ROUND_S, warmUpS: 0 })
          : undefined,
      ]);
      if (flood !== undefined) say(`  the flood was answered ${JSON.stringify(flood.answers)}, ${flood.held} held`);
      allTaken(offered.answers);
      return offered.latencies;
    },
  },
  hostile: {
    what: 'one sends 100 hostile webhooks a second, 20 others 10 good ones each',
    limit: 1.25,
    locations: 21,
    prepare: (pool) => seedOrders(pool, OTHERS, 20 * 10 * ROUND_S, (nth) => `club-${(nth % 20) + 2}`),
    async round(stage, disturbed) {
      const urls = stage.webhookUrls.slice(1);
      const [offered, hostile] = await Promise.all([
        stage.offer({ urls, prefix: OTHERS, perSecond: 200, seconds: ROUND_S, warmUpS: WARM_UP_S }),
        disturbed ? stage.offerHostility({ perSecond: 100, seconds: ROUND_S }) : undefined,
      ]);
      if (hostile !== undefined) say(`  the hostile were answered ${JSON.stringify(hostile)}`);
      allTaken(offered.answers);
      return offered.latencies;
    },
  },
  retention: {
    what: 'partitions are dropped and members erased while 20 locations send 10 webhooks a second each',
    limit: 1.25,
    locations: 21,
    async prepare(pool, databaseUrl, disturbed) {
      await seedPast(pool, 60_000);
      if (disturbed) await moveClock(databaseUrl, { days: 40 });
      await seedOrders(pool, OTHERS, 20 * 10 * 2 * ROUND_S, (nth) => `club-${(nth % 20) + 2}`);
    },
    async round(stage, disturbed) {
      const urls = stage.webhookUrls.slice(1);
      // The jobs begin some seconds after the process.
      const offered = await stage.offer({
        urls,
        prefix: OTHERS,
        perSecond: 200,
        seconds: 2 * ROUND_S,
        warmUpS: WARM_UP_S,
      });
      allTaken(offered.answers);
      if (disturbed) await allGone(stage.pool);
      return offered.latencies;
    },
  },
};

const words = process.stderr;
const say = (line: string): void => void words.write(`${line}\n`);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '5' }, json: { type: 'boolean', default: false } },
});
const chosen = positionals.length === 0 ? Object.keys(SCENARIOS) : positionals;
const rounds = Number(values.rounds);
const unknown = chosen.find((name) => !Object.hasOwn(SCENARIOS, name));
if (unknown !== undefined || !Number.isInteger(rounds) || rounds < 1) {
  say(`Usage: npm run chaos:neighbours [-- ${Object.keys(SCENARIOS).join(' | ')}] [--rounds <n>] [--json]`);
  process.exit(2);
}
process.env['METADATA_SERVER_DETECTION'] = 'none';

// With fsync: what waits for the disk waits for each other, too.
const postgres = await startPostgres({ settings: { fsync: 'on', max_connections: '100' } });
const results: Record<string, { ratio: number; withoutMs: number; withMs: number; limit: number; ok: boolean }> = {};
try {
  for (const name of chosen) {
    const scenario = SCENARIOS[name];
    if (scenario === undefined) continue;
    say(`${name}: ${scenario.what}`);
    const p99s = { without: [] as number[], with: [] as number[] };
    for (let nth = 1; nth <= rounds; nth += 1) {
      // Which comes first changes, lest the machine's own drift count for one of them.
      for (const disturbed of nth % 2 === 0 ? [true, false] : [false, true]) {
        const latencies = await playRound(postgres, scenario, disturbed);
        p99s[disturbed ? 'with' : 'without'].push(percentile(latencies, 0.99));
        const [p50, p99] = [0.5, 0.99].map((share) => percentile(latencies, share).toFixed(1));
        say(`  round ${nth} ${disturbed ? 'with   ' : 'without'} p50 ${p50} ms, p99 ${p99} ms, of ${latencies.length}`);
      }
    }
    const [withoutMs, withMs] = [percentile(p99s.without, 0.5), percentile(p99s.with, 0.5)];
    const ratio = withMs / withoutMs;
    results[name] = { ratio, withoutMs, withMs, limit: scenario.limit, ok: ratio <= scenario.limit };
    say(
      `  p99 ${withMs.toFixed(1)} ms against ${withoutMs.toFixed(1)} ms: ${ratio.toFixed(2)} (at most ${scenario.limit})`,
    );
  }
} finally {
  await postgres.stop();
}
if (values.json) process.stdout.write(`${JSON.stringify(results)}\n`);
process.exitCode = Object.values(results).every(({ ok }) => ok) ? 0 : 1;

async function playRound(on: Postgres, scenario: Scenario, disturbed: boolean): Promise<number[]> {
  const stage = await setSmallStage(on, {
    locations: scenario.locations,
    prepare: async (pool, databaseUrl) => scenario.prepare?.(pool, databaseUrl, disturbed),
  });
  try {
    return await scenario.round(stage, disturbed);
  } finally {
    await stage.stop();
  }
}

/** @returns from each push to the request at the POS, at every location but the first */
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

/** Orders as if they had been placed and sent. */
async function seedOrders(
  pool: pg.Pool,
  prefix: string,
  count: number,
  locationOf: (nth: number) => string,
): Promise<void> {
  const nths = Array.from({ length: count }, (_, nth) => nth);
  await pool.query(
    `INSERT INTO orders (service_order_id, location_id, integration, fulfillment, rank, sequence)
     SELECT id, location_id, 'standard', 'pickup', 1, 2 FROM unnest($1::text[], $2::text[]) AS o(id, location_id)`,
    [nths.map((nth) => `${prefix}${nth}`), nths.map(locationOf)],
  );
}

/** Orders of long ago, with what is kept of them: contents, histories, deliveries of three days. */
async function seedPast(pool: pg.Pool, count: number): Promise<void> {
  await pool.query(
    `WITH past AS (
       SELECT nth, 'past-' || nth AS id, gen_random_uuid() AS delivery_id, current_date + nth % 3 - 1 AS day
       FROM generate_series(1, $1::int) AS nth
     ), o AS (
       INSERT INTO orders (service_order_id, location_id, integration, fulfillment, status, rank, sequence, ended_at)
       SELECT id, 'club', 'standard', 'pickup', 'completed', 6, 7, now() FROM past
     ), c AS (
       INSERT INTO order_contents (service_order_id, contents)
       SELECT id, jsonb_build_object('member', jsonb_build_object('name', repeat('x', 500))) FROM past
     ), e AS (
       INSERT INTO status_events (service_order_id, delivery_id, status, native_status, outcome, sequence)
       SELECT id, delivery_id, 'completed', 'COMPLETED', 'applied', 7 FROM past
     )
     INSERT INTO deliveries (day, location_id, id, integration, received_at, headers, body, events, outcome)
     SELECT day, 'club', delivery_id, 'standard', now(), '{}', convert_to(repeat('x', 400), 'UTF8'), 1, 'applied'
     FROM past`,
    [count],
  );
  await pool.query('ANALYZE');
}

async function allGone(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query<{ contents: number; deliveries: number }>(
    `SELECT (SELECT count(*)::int FROM order_contents) AS contents,
            (SELECT count(*)::int FROM deliveries WHERE location_id = 'club') AS deliveries`,
  );
  say(`  left of the past: ${JSON.stringify(rows[0])}`);
}

function allTaken(answers: Record<string, number>): void {
  const { 200: taken, ...others } = answers;
  if (Object.keys(others).length > 0) say(`  the others were answered ${JSON.stringify({ 200: taken, ...others })}`);
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}
