import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { archiveMonth, findArchived } from '../../../src/core/retention/archive.ts';
import { archiveStore } from '../../../src/core/retention/archive-store.ts';
import { PACKED } from '../../../src/core/retention/pack-order.ts';
import { forgetPastOrder, movePastOrders } from '../../../src/core/retention/past-orders.ts';
import { dropOldPartitions } from '../../../src/core/retention/retention-rules.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { prepareBenchDatabase, type BenchDatabase } from '../stage/prepare-bench-database.ts';
import { postgresMs } from './processor-ms.ts';
import { LOCATIONS } from '../variants/start-contest.ts';
import { median } from './summarize.ts';

const PII_DAYS = 30;
const LOOK_UPS = 2_000;

export type YearsMeasurement = {
  currentOrderBytes: number;
  pastOrderBytes: number;
  tombstoneBytes: number;
  moveUs: number;
  movesPerSecond: number;
  lookUpWithYears: number;
  archivedPerSecond: number;
  archivedOrderBytes: number;
  archivedReadMs: number;
  /** The database with the years. */
  database: BenchDatabase;
};

/**
 * Measures what an order costs over the years: moves orders out of the tables of current orders, drops months, and looks
 * a new order up among the past ones.
 * @param postgres a running Postgres with fsync
 * @param about.moved orders that are moved
 * @param about.perMonth orders of each of 60 months, of which 13 are still stored
 */
export async function measureYears(
  postgres: { url: string; pid: number },
  about: { moved: number; perMonth: number },
  say: (line: string) => void,
): Promise<YearsMeasurement> {
  const database = await prepareBenchDatabase(postgres.url, { name: 'bench_years', locations: LOCATIONS });
  const { databaseUrl } = database;
  const { pool, flushPool } = openDatabase(databaseUrl, 4, () => {});
  // Another client, because the pool has the service's time-outs.
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const sizeOf = async (tables: readonly string[]): Promise<number> => {
    const { rows } = await client.query<{ bytes: number }>(
      `SELECT sum(pg_total_relation_size(oid))::float8 AS bytes FROM pg_class
       WHERE relkind = 'r' AND relname ~ ('^(' || array_to_string($1::text[], '|') || ')(_[0-9]+)?$')`,
      [tables],
    );
    return rows[0]?.bytes ?? Number.NaN;
  };
  try {
    const empty = await lookUp(client, pool);
    await seedEnded(client, about.moved);
    const currentOrderBytes = (await sizeOf(PACKED)) / about.moved;
    const [began, node, server] = [performance.now(), process.cpuUsage(), postgresMs(postgres.pid)];
    const moved = await movePastOrders(pool, PII_DAYS);
    if (moved !== about.moved) throw new Error(`${moved} of ${about.moved} orders were moved`);
    // It rests as long as it works.
    const movesPerSecond = moved / ((performance.now() - began) / 1_000);
    const { user, system } = process.cpuUsage(node);
    const moveUs = (user + system + (postgresMs(postgres.pid) - server) * 1_000) / moved;
    const pastOrderBytes = (await sizeOf(['past_orders'])) / moved;
    say(`  an order takes ${currentOrderBytes.toFixed(0)} bytes, then ${pastOrderBytes.toFixed(0)}`);
    say(`  ${movesPerSecond.toFixed(0)} orders moved a second, ${moveUs.toFixed(0)} µs of processor time each`);

    // A month that is over.
    await client.query(`SELECT ensure_past_orders_partition('2019-01-01')`);
    await client.query(`UPDATE past_orders SET month = '2019-01-01'`);
    const archived = await measureArchive(client, pool, moved);
    say(
      `  ${archived.archivedPerSecond.toFixed(0)} orders archived and verified a second, ${archived.archivedOrderBytes.toFixed(0)} bytes each`,
    );
    say(`  an archived order is read in ${archived.archivedReadMs.toFixed(0)} ms`);

    for (let month = 59; month >= 0; month -= 1) {
      await seedMonth(client, month, about.perMonth);
      if (month % 12 === 11) await dropOldPartitions(pool, 'past_orders', 13 * 31);
    }
    await dropOldPartitions(pool, 'past_orders', 13 * 31);
    const { rows } = await client.query<{ orders: number }>(
      'SELECT sum(length(entries))::float8 / 16 AS orders FROM tombstones',
    );
    const tombstoneBytes = (await sizeOf(['tombstones', 'tombstone_locations'])) / (rows[0]?.orders ?? Number.NaN);
    await client.query('VACUUM ANALYZE past_orders, tombstones');
    const years = await lookUp(client, pool);
    say(`  ${rows[0]?.orders} tombstones take ${tombstoneBytes.toFixed(1)} bytes each`);
    say(
      `  a new order is looked up in ${(years * 1_000).toFixed(0)} µs, and in ${(empty * 1_000).toFixed(0)} µs without years`,
    );
    return {
      currentOrderBytes,
      pastOrderBytes,
      tombstoneBytes,
      moveUs,
      movesPerSecond,
      lookUpWithYears: years / empty,
      ...archived,
      database,
    };
  } finally {
    await client.end();
    await Promise.all([pool.end(), flushPool.end()]);
  }
}

/** Archives the month of the moved orders in a folder, and reads some of them. */
async function measureArchive(
  client: pg.Client,
  pool: pg.Pool,
  orders: number,
): Promise<Pick<YearsMeasurement, 'archivedPerSecond' | 'archivedOrderBytes' | 'archivedReadMs'>> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-archive-'));
  try {
    const store = archiveStore(pathToFileURL(folder).href);
    const began = performance.now();
    await archiveMonth(pool, store, '2019-01');
    const seconds = (performance.now() - began) / 1_000;
    const files = await readdir(folder, { recursive: true, withFileTypes: true });
    const sizes = await Promise.all(
      files.filter((file) => file.isFile()).map(async (file) => (await stat(join(file.parentPath, file.name))).size),
    );
    const { rows } = await client.query<{ id: string }>('SELECT service_order_id AS id FROM past_orders LIMIT 20');
    const reads: number[] = [];
    for (const { id } of rows) {
      const start = performance.now();
      if ((await findArchived(store, '2019-01', id)) === undefined) throw new Error(`${id} is not in the archive`);
      reads.push(performance.now() - start);
    }
    return {
      archivedPerSecond: orders / seconds,
      archivedOrderBytes: sizes.reduce((sum, size) => sum + size, 0) / orders,
      archivedReadMs: median(reads),
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Orders with five webhooks that ended 40 days ago and were erased. */
async function seedEnded(client: pg.Client, orders: number): Promise<void> {
  await client.query(
    `WITH n AS MATERIALIZED (
       SELECT gen_random_uuid()::text AS id, gen_random_uuid()::text AS pos_id, 'club-' || n % 10000 AS club,
              now() - interval '40 days' + make_interval(secs => n / 100.0) AS at
       FROM generate_series(1, $1::int) AS n
     ), p AS (
       INSERT INTO placements (service_order_id, location_id, state, signalled_at, deadline_at, next_attempt_at, attempts,
                               requested_at, request_ended_at, provider_order_id, finished_at, pos_account)
       SELECT id, club, 'sent', at, at + interval '30 min', at, 1, at + interval '40 ms', at + interval '90 ms', pos_id,
              at + interval '90 ms', encode(sha256(club::bytea), 'hex') FROM n
     ), a AS (
       INSERT INTO placement_attempts (service_order_id, attempt, call, started_at, ended_at, outcome, http_status, milliseconds)
       SELECT id, 1, 'createOrder', at + interval '40 ms', at + interval '90 ms', 'placed', 200, 50 FROM n
     ), i AS (
       INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id, created_at)
       SELECT club, 'standard', pos_id, id, at + interval '90 ms' FROM n
     ), e AS (
       INSERT INTO status_events (service_order_id, webhook_id, status, native_status, outcome, sequence, provider_order_id,
                                  occurred_at, recorded_at)
       SELECT id, gen_random_uuid(), s.status, upper(s.status), CASE WHEN s.nth < 5 THEN 'applied' ELSE 'duplicate' END,
              CASE WHEN s.nth < 5 THEN s.nth + 2 END, pos_id, at + random() * interval '1 h', at + random() * interval '1 h'
       FROM n, unnest(ARRAY['received', 'in_progress', 'ready', 'completed', 'completed']) WITH ORDINALITY AS s (status, nth)
     ), l AS (
       INSERT INTO live_messages (service_order_id, sequence, rank, applied_at, published_at, provider_order_id)
       SELECT id, s, s * 10, at + random() * interval '1 h', at + random() * interval '1 h', pos_id
       FROM n, generate_series(1, 6) AS s
     )
     INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence,
                         provider_order_id, created_at, updated_at, ended_at, erased_at)
     SELECT id, 'K472', club, 'standard', 'pickup', 60, 6, pos_id, at, at + interval '1 h', at + interval '1 h',
            at + interval '31 days' FROM n`,
    [orders],
  );
  await client.query(`VACUUM (ANALYZE) ${PACKED.join(', ')}`);
}

/** Past orders of the month `ago` months ago. Their packed rows are short, because nothing here reads them. */
async function seedMonth(client: pg.Client, ago: number, orders: number): Promise<void> {
  const { rows } = await client.query<{ month: string }>(
    `SELECT (date_trunc('month', now() AT TIME ZONE 'UTC') - make_interval(months => $1))::date::text AS month`,
    [ago],
  );
  await client.query('SELECT ensure_past_orders_partition($1)', [rows[0]?.month]);
  // A drop that meets it fails.
  const name = `past_orders_${rows[0]?.month.slice(0, 7).replace('-', '')}`;
  await client.query(`ALTER TABLE ${name} SET (autovacuum_enabled = off)`);
  await client.query(
    `INSERT INTO past_orders (month, service_order_id, location_id, provider_order_id, signalled_at, state, rank,
                              last_notified_sequence, packed)
     SELECT $1::date, gen_random_uuid(), 'club-' || n % 10000, gen_random_uuid(), $1::date + make_interval(secs => n),
            'sent', 60, 0, 'short'
     FROM generate_series(1, $2::int) AS n`,
    [rows[0]?.month, orders],
  );
}

/** @returns the median milliseconds in which an order is found to be new */
async function lookUp(client: pg.Client, pool: pg.Pool): Promise<number> {
  const { rows } = await client.query<{ serviceOrderId: string; leaseId: string }>(
    `INSERT INTO placements (service_order_id, deadline_at, lease_id)
     SELECT gen_random_uuid(), now(), gen_random_uuid() FROM generate_series(1, ${LOOK_UPS})
     RETURNING service_order_id AS "serviceOrderId", lease_id AS "leaseId"`,
  );
  const times: number[] = [];
  for (const placement of rows) {
    const began = performance.now();
    const found = await pool.query<{ isPast: boolean }>({
      name: 'forget-past-order',
      text: `SELECT ${forgetPastOrder('$1', '$2')} AS "isPast"`,
      values: [placement.serviceOrderId, placement.leaseId],
    });
    if (found.rows[0]?.isPast !== false) throw new Error('a new order was taken for a past one');
    times.push(performance.now() - began);
  }
  return median(times);
}
