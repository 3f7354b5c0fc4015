import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleBacklog } from '../../src/core/orders/sample-backlog.ts';
import type { Config } from '../../src/config/config.ts';
import { createLog } from '../../src/observe/create-log.ts';
import { createMetrics } from '../../src/observe/create-metrics.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { boundConnections } from '../../src/http/bound-connections.ts';
import { startObserving } from '../../src/observe/start-observing.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { queryOnce } from '../support/query-once.ts';
import { readPlans } from '../support/read-plans.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { OPERATOR_TOKEN, scrape, type Scrape } from './scrape.ts';

const BACKLOG = `
  INSERT INTO locations (location_id, integration, settings, paused_at, groups)
  VALUES ('club-1', 'standard', '', NULL, '{berlin,nord}'), ('club-2', 'standard', '', now(), '{nord}');
  INSERT INTO placements (service_order_id, location_id, state, signalled_at, deadline_at, next_attempt_at, cause)
  SELECT 'waiting-' || n, 'club-1', 'waiting', now() - make_interval(mins => n), now() + make_interval(mins => 30 - n), now(), NULL::jsonb FROM generate_series(1, 3) AS n
  UNION ALL SELECT 'waiting-for-tomorrow', 'club-1', 'waiting', now() - interval '5 h', now() + interval '12 h', now(), NULL
  UNION ALL SELECT 'held-' || n, 'club-1', 'held', now() - interval '1 h', now(), now(), CASE WHEN n = 1 THEN '{"code":"reconnect_needed"}'::jsonb END FROM generate_series(1, 2) AS n
  UNION ALL SELECT 'paused-' || n, 'club-2', 'held', now() - interval '1 h', now(), now(), '{"code":"location_paused"}' FROM generate_series(1, 3) AS n
  UNION ALL SELECT 'doubt-' || n, 'club-1', 'in_doubt', now() - make_interval(mins => 8 - n), now() + make_interval(mins => 22 + n), CASE WHEN n = 1 THEN 'infinity' ELSE now() END::timestamptz, NULL FROM generate_series(1, 4) AS n;
  -- Silent, silent but fresh, silent for too long, received, ended, and wanted later.
  INSERT INTO placements (service_order_id, location_id, state, deadline_at, finished_at)
  SELECT name, 'club-1', 'sent', now(), now() - make_interval(mins => minutes)
  FROM (VALUES ('silent', 10), ('fresh', 1), ('old', 120), ('received', 10), ('ended', 10), ('for-tomorrow', 10)) AS o(name, minutes);
  INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, rank, ended_at, requested_at)
  SELECT service_order_id, 'K472', 'club-1', 'pickup', CASE service_order_id WHEN 'received' THEN 20 ELSE 10 END,
         CASE service_order_id WHEN 'ended' THEN now() END,
         CASE service_order_id WHEN 'for-tomorrow' THEN now() + interval '12 h' END
  FROM placements WHERE state = 'sent';
  INSERT INTO outbox (service_order_id, sequence, rank, applied_at)
  SELECT 'o-' || n, 1, 10, now() - make_interval(secs => 10 * n) FROM generate_series(1, 5) AS n;
  INSERT INTO parked_events (location_id, integration, provider_order_id, webhook_day, webhook_id, rank, native_status, parked_at)
  SELECT location, 'standard', 'p-' || minutes, now()::date, gen_random_uuid(), 20, 'x', now() - make_interval(mins => minutes)
  FROM (VALUES ('club-1', 1), ('club-1', 30), ('club-1', 120), ('club-2', 1)) AS e(location, minutes);
  -- At the other location nobody could learn it any more.
  UPDATE placements SET requested_at = now() - CASE location_id WHEN 'club-1' THEN interval '1 min' ELSE interval '2 h' END;
  INSERT INTO cancellations (service_order_id, location_id, requested_by, state, deadline_at, next_attempt_at, finished_at)
  VALUES ('by-phone', 'club-1', 'platform', 'by_phone', now(), 'infinity', NULL),
         ('asked', 'club-1', 'platform', 'asked', now() + interval '1 h', now() + interval '1 h', NULL),
         ('refused', 'club-1', 'platform', 'refused', now(), 'infinity', now());
  INSERT INTO location_last_seen VALUES ('club-1', 'standard', now() - interval '20 s');
  -- Of these only the first two are of a location, and one of them does not end.
  INSERT INTO credentials (seed_sha256, integration, granted_at, lasts_s)
  VALUES ('ends', 'standard', now() - interval '1 day', 3 * 86400), ('endless', 'standard', now(), NULL),
         ('left', 'standard', now() - interval '9 days', 86400);
  UPDATE locations SET grant_sha256 = CASE location_id WHEN 'club-1' THEN 'ends' ELSE 'endless' END::bytea;
  -- Two looks of one operator and three of another, in this hour; two new admins.
  INSERT INTO audit (at, actor_kind, actor_id, actor_name, action)
  SELECT now() - make_interval(mins => minutes), kind, id, id, action
  FROM (VALUES (1, 'person', 'ada', 'read contents'), (2, 'person', 'ada', 'read webhook'), (70, 'person', 'ada', 'read webhook'),
               (1, 'token', 'kim', 'read contents'), (2, 'token', 'kim', 'read contents'), (3, 'token', 'kim', 'read webhook'),
               (4, 'token', 'kim', 'retry'), (5, 'operator_token', 'operator_token', 'sign in'),
               (90, 'operator_token', 'operator_token', 'retry')) AS a(minutes, kind, id, action);
  INSERT INTO operator_grants (grant_id, email, roles, created_at)
  VALUES (gen_random_uuid(), 'new@club.example', '{viewer,admin}', now()),
         (gen_random_uuid(), 'old@club.example', '{viewer,admin}', now() - interval '2 h'),
         (gen_random_uuid(), 'viewer@club.example', '{viewer}', now());
  INSERT INTO operator_tokens (token_id, sha256, name, roles) VALUES (gen_random_uuid(), '', 'new', '{admin}');`;

describe('the backlog', () => {
  let system: System;
  beforeAll(async () => {
    system = await startSystem({
      stepped: 'all',
      env: { OPERATOR_TOKEN },
      prepare: async (databaseUrl) => void (await queryOnce(databaseUrl, BACKLOG)),
    });
  });
  afterAll(() => system?.stop());

  const sampled = async (): Promise<Scrape> => {
    await system.round('measurement of the backlog').catch(() => {});
    return scrape(system.urls[0] ?? '');
  };

  it('is in the metrics after each measurement', async () => {
    const read = await sampled();
    expect(read.value('expediter_placements_open', { state: 'waiting' })).toBe(4);
    expect(read.value('expediter_placements_open', { state: 'held' })).toBe(2);
    expect(read.value('expediter_placements_open', { state: 'paused' })).toBe(3);
    expect(read.value('expediter_placements_open', { state: 'in_doubt' })).toBe(4);
    const ofGroup = (group: string) => read.value('expediter_group_placements_open', { group, state: 'held' });
    expect([ofGroup('berlin'), ofGroup('nord'), ofGroup('south')]).toEqual([2, 5, undefined]);
    expect(read.value('expediter_placements_for_operator')).toBe(1);
    expect(read.value('expediter_cancellations_by_phone')).toBe(1);
    expect(read.value('expediter_reconnect_needed')).toBe(1);
    expect(read.value('expediter_orders_unreceived')).toBe(1);
    expect(read.value('expediter_operator_actions', { action: 'member_data' })).toBe(3);
    expect(read.value('expediter_operator_actions', { action: 'admin' })).toBe(2);
    expect(read.value('expediter_operator_actions', { action: 'operator_token' })).toBe(1);
    expect(read.value('expediter_parked_events')).toBe(2);
    const near = (name: string, seconds: number, labels = {}): void => {
      expect(read.value(name, labels), name).toBeGreaterThanOrEqual(seconds);
      expect(read.value(name, labels), name).toBeLessThan(seconds + 30);
    };
    // A doubt that waits for a person does not count.
    near('expediter_placement_oldest_open_seconds', 360);
    near('expediter_outbox_oldest_seconds', 50);
    near('expediter_vacuum_held_seconds', 0);
    near('expediter_integration_silent_seconds', 20, { integration: 'standard' });
    near('expediter_connection_left_seconds', 2 * 86_400 - 25, { integration: 'standard' });
    expect(read.value('expediter_connection_left_seconds', { integration: 'square' })).toBeUndefined();
    expect(read.value('expediter_integration_silent_seconds', { integration: 'square' })).toBeUndefined();
  });

  it('is missing from the metrics while Postgres is away', async () => {
    const name = new URL(system.databaseUrl).pathname.slice(1);
    const server = system.databaseUrl.replace(name, 'postgres');
    await queryOnce(server, `ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    await queryOnce(server, 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
    const up = async (): Promise<unknown> => {
      await system.round('check of Postgres');
      return (await sampled()).value('expediter_database_up');
    };
    await until(async () => (await up()) === 0);
    const read = await sampled();
    expect(read.value('expediter_placements_open', { state: 'waiting' })).toBeUndefined();
    expect(read.value('expediter_placement_oldest_open_seconds')).toBeUndefined();
    expect(read.value('expediter_integration_silent_seconds', { integration: 'standard' })).toBeUndefined();
    expect(read.value('expediter_ready')).toBe(1);
    await queryOnce(server, `ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
    await until(async () => (await up()) === 1);
    expect((await sampled()).value('expediter_parked_events')).toBe(2);
  });
});

describe('a measurement of the backlog', () => {
  const AT_REST = {
    readiness: () => ({ ready: true, database: 'up' as const }),
    spill: undefined,
    breakers: () => new Map(),
    connections: boundConnections(1, console).counts,
    droppedLines: () => 0,
  };
  let databaseUrl: string;
  let pool: pg.Pool;
  beforeAll(async () => {
    databaseUrl = await createDatabase();
    ({ pool } = openDatabase(databaseUrl, 5, () => {}));
  });
  afterAll(() => pool.end());
  const sample = (from = pool): ReturnType<typeof sampleBacklog> => sampleBacklog(from, { PLACEMENT_DEADLINE_S: 1800 });

  it('does not happen during a scrape, and the scrape opens no connection', async () => {
    const pools = openDatabase(databaseUrl, 5, () => {});
    const metrics = createMetrics({
      integrations: ['standard'],
      version: '1',
      now: () => new Date(),
      pools: { main: pools.pool, flush: pools.flushPool },
      ...AT_REST,
    });
    for (let i = 0; i < 10; i++) expect((await metrics.render()).body).toContain('expediter_pool_connections');
    expect(pools.pool.totalCount + pools.flushPool.totalCount).toBe(0);
    await Promise.all([pools.pool.end(), pools.flushPool.end()]);
  });

  it('that fails removes the old numbers from the metrics', async () => {
    const { pool: main, flushPool } = openDatabase(databaseUrl, 5, () => {});
    const observing = startObserving({
      isRead: true,
      config: { OPERATOR_TOKEN, PLACEMENT_DEADLINE_S: 1800 } as Config,
      log: createLog('silent', { write: () => {} }),
      integrations: ['standard'],
      pool: main,
      flushPool,
      now: () => new Date(),
    });
    await observing.load(AT_REST);
    const measuring = observing.tasks.find(({ name }) => name === 'measurement of the backlog');
    await measuring?.work();
    expect((await observing.metrics?.())?.body).toMatch(/^expediter_parked_events 0$/m);
    main.query = () => Promise.reject(new Error('lock time-out'));
    await expect(measuring?.work()).rejects.toThrow('lock time-out');
    expect((await observing.metrics?.())?.body).not.toMatch(/^expediter_parked_events \d/m);
    await Promise.all([main.end(), flushPool.end()]);
  });

  it('gives only zeros for an empty database', async () => {
    const { actions, silent, lasts, kitchens, groups, ...counts } = await sample();
    expect({ silent, lasts, kitchens, groups }).toEqual({ silent: {}, lasts: {}, kitchens: {}, groups: [] });
    expect(Object.entries({ ...actions, ...counts }).filter(([, count]) => count !== 0)).toEqual([]);
  });

  it('reads indexes only up to a limit, however many orders are stored', async () => {
    // So many that reading all to sort them costs more than the index does.
    await pool.query(
      `INSERT INTO placements (service_order_id, location_id, state, deadline_at, finished_at)
       SELECT 'open-' || n, 'club-' || n % 50, 'waiting', now(), NULL FROM generate_series(1, 30000) AS n
       UNION ALL SELECT 'sent-' || n, 'club-1', 'sent', now(), now() - interval '10 min' FROM generate_series(1, 12000) AS n`,
    );
    await pool.query(
      `INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, rank)
       SELECT service_order_id, 'K472', 'club-1', 'pickup', 30 FROM placements WHERE state = 'sent'`,
    );
    await pool.query(
      `INSERT INTO outbox (service_order_id, sequence, rank)
       SELECT 'o-' || n, 1, 10 FROM generate_series(1, 5000) AS n`,
    );
    await pool.query(
      `INSERT INTO parked_events (location_id, integration, provider_order_id, webhook_day, webhook_id, rank, native_status)
       SELECT 'club-1', 'standard', 'p-' || n, now()::date, $1::uuid, 20, 'x' FROM generate_series(1, 12000) AS n`,
      [randomUUID()],
    );
    await pool.query(
      `INSERT INTO audit (at, actor_kind, actor_id, actor_name, action)
       SELECT now() - make_interval(mins => n % 120), 'person', 'ada', 'ada', 'read contents'
       FROM generate_series(1, 30000) AS n`,
    );
    await pool.query(`UPDATE placements SET requested_at = now() WHERE service_order_id = 'open-1'`);
    await pool.query('ANALYZE');
    expect(await sample()).toMatchObject({
      waiting: 10_000,
      parked: 10_000,
      unreceived: 0,
      actions: { memberData: 10_000 },
    });
    const { whole, scans } = await readPlans(pool, sample);
    // Of these there is a row per location, token or grant, whatever waits.
    const few = ['location_last_seen', 'locations', 'kitchens', 'credentials', 'operator_tokens', 'operator_grants'];
    expect(whole.filter((relation) => !few.includes(relation))).toEqual([]);
    expect(new Set(scans.map(({ relation }) => relation))).toEqual(
      new Set([
        'placements',
        'orders',
        'outbox',
        'status_endpoints',
        'parked_events',
        'cancellations',
        'audit',
        ...few,
      ]),
    );
    for (const { rows } of scans) expect(rows).toBeLessThanOrEqual(10_000);
  });
});
