import pg from 'pg';
import { openDatabase } from '../../../src/database/open-database.ts';
import { redriveParked, sweepParked } from '../../../src/core/statuses/redrive-parked.ts';
import { prepareBenchDatabase } from '../stage/prepare-bench-database.ts';
import { median } from './summarize.ts';

export type ParkedMeasurement = { parkedSweepVs10k: number; parkedRedriveVs10k: number };

/** Parked events about tills' own sales, which never become orders of ours. Each has its own POS id: none is merged. */
const FEW = 10_000;
/** Orders of a round. Their events are parked until their POS ids become known. */
const ORDERS = 20;
const WARM_UP_ROUNDS = 5;

type Parked = {
  pool: ReturnType<typeof openDatabase>['pool'];
  sweeps: number[];
  redrives: number[];
  close(): Promise<void>;
};

/**
 * Measures the sweep and the redrive of a chain whose tills send all their own sales, against a chain with few of them.
 * @param postgres a running Postgres with fsync
 */
export async function measureParked(
  postgres: { url: string },
  about: { rounds: number; many: number },
  say: (line: string) => void,
): Promise<ParkedMeasurement> {
  const few = await layParked(postgres.url, 'bench_parked_few', FEW);
  const many = await layParked(postgres.url, 'bench_parked_many', about.many);
  try {
    for (let round = 0; round < WARM_UP_ROUNDS + about.rounds; round += 1) {
      // The order alternates, so that a change of the machine's speed affects both.
      for (const each of round % 2 === 0 ? [few, many] : [many, few]) {
        const { sweepMs, redriveMs } = await playRound(each.pool, round);
        if (round < WARM_UP_ROUNDS) continue;
        each.sweeps.push(sweepMs);
        each.redrives.push(redriveMs);
      }
    }
  } finally {
    await Promise.all([few.close(), many.close()]);
  }
  const figure = (of: 'sweeps' | 'redrives'): number => median(many[of]) / median(few[of]);
  for (const [rows, { sweeps, redrives }] of [
    [FEW, few],
    [about.many, many],
  ] as const) {
    say(`  ${rows} parked: a sweep ${median(sweeps).toFixed(2)} ms, a redrive ${median(redrives).toFixed(2)} ms`);
  }
  return { parkedSweepVs10k: figure('sweeps'), parkedRedriveVs10k: figure('redrives') };
}

async function layParked(serverUrl: string, name: string, rows: number): Promise<Parked> {
  const { databaseUrl } = await prepareBenchDatabase(serverUrl, { name, locations: 1 });
  const { pool, flushPool } = openDatabase(databaseUrl, 4, () => {});
  // Another client, because the pool has the service's time-outs.
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query(
    `INSERT INTO parked_events (location_id, integration, provider_order_id, rank, webhook_day, webhook_id, native_status,
                                parked_at)
     SELECT 'club-' || n % 100, 'standard', 'sale-' || n, 60, now()::date, gen_random_uuid(), 'CLOSED',
            now() - make_interval(secs => n / 100)
     FROM generate_series(1, $1::int) AS n`,
    [rows],
  );
  await client.query('VACUUM ANALYZE parked_events');
  await client.end();
  return {
    pool,
    sweeps: [],
    redrives: [],
    async close() {
      await Promise.all([pool.end(), flushPool.end()]);
    },
  };
}

/** Makes the state after processes died just after they stored POS ids. Measures the sweep that finds these ids. */
async function playRound(pool: Parked['pool'], round: number): Promise<{ sweepMs: number; redriveMs: number }> {
  await pool.query(
    `WITH o AS (
       INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence, provider_order_id)
       SELECT 'order-' || $1::int || '-' || n, 'K472', 'club-1', 'standard', 'pickup', 10, 2, 'pos-' || $1::int || '-' || n
       FROM generate_series(1, ${ORDERS}) AS n
       RETURNING service_order_id, location_id, integration, provider_order_id
     ), i AS (
       INSERT INTO provider_orders (service_order_id, location_id, integration, provider_order_id) SELECT * FROM o
     )
     INSERT INTO parked_events (location_id, integration, provider_order_id, rank, webhook_day, webhook_id, native_status)
     SELECT location_id, integration, provider_order_id, 40, now()::date, gen_random_uuid(), 'READY' FROM o`,
    [round],
  );
  const began = performance.now();
  const awaited = await sweepParked(pool);
  const swept = performance.now();
  for (const posId of awaited) await redriveParked(pool, posId);
  const ended = performance.now();
  if (awaited.length !== ORDERS) throw new Error(`the sweep found ${awaited.length} POS ids of ${ORDERS}`);
  await sweepParked(pool);
  return { sweepMs: swept - began, redriveMs: (ended - swept) / ORDERS };
}
