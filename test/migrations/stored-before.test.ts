import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { LIFECYCLE } from '../../src/core/domain/lifecycle.ts';
import { uuidV7 } from '../../src/core/domain/uuid-v7.ts';
import { dropOldPartitions } from '../../src/core/retention/retention-rules.ts';
import { migrate } from '../../src/database/migrate.ts';
import { ALLOW_PRIVATE_HOSTS } from '../support/allowed-loopback.ts';
import { createEmptyDatabase } from '../support/create-database.ts';
import { runCli } from '../support/run-cli.ts';
import { statusWebhook } from '../support/start-system.ts';

const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url));
const RETENTION_DAYS = 14;
const DAY_MS = 86_400_000;

const open: pg.Pool[] = [];
afterEach(() => Promise.all(open.splice(0).map((pool) => pool.end())));

/** A database that has come up to this migration. */
async function databaseAt(last: string): Promise<{ url: string; pool: pg.Pool }> {
  const dir = await mkdtemp(join(tmpdir(), 'migrations-'));
  for (const file of await readdir(MIGRATIONS)) {
    if (file.endsWith('.sql') && file <= `${last}.sql`) await cp(join(MIGRATIONS, file), join(dir, file));
  }
  const url = await createEmptyDatabase();
  await migrate(url, { dir }).catch((error: unknown) => {
    // It makes the days' tables at its end, by a function of today's schema.
    if (!String(error).includes('function ensure_webhook_partition(date) does not exist')) throw error;
  });
  await rm(dir, { recursive: true });
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  open.push(pool);
  return { url, pool };
}

async function cli<Answer>(url: string, args: readonly string[], input?: string): Promise<Answer> {
  const SETTINGS_KEY = `test:${Buffer.alloc(32, 7).toString('base64')}`;
  const { code, out, error } = await runCli(
    { DATABASE_URL: url, SETTINGS_KEY, ALLOW_PRIVATE_HOSTS },
    [...args, '--json'],
    input,
  );
  expect({ code, error }).toEqual({ code: 0, error: '' });
  return JSON.parse(out) as Answer;
}

describe('what was stored when ranks were places in a list', () => {
  it('is at the same step of its life under the new ranks', async () => {
    const { url, pool } = await databaseAt('0011-webhooks.breaking');
    const statuses = LIFECYCLE.map((step) => step.status);
    await pool.query(
      `WITH step AS (
         SELECT 'at-' || nth - 1 AS id, nth - 1 AS rank, status FROM unnest($1::text[]) WITH ORDINALITY AS s(status, nth)
       ), p AS (
         INSERT INTO placements (service_order_id, location_id, state, deadline_at)
         SELECT id, 'club-1', 'sent', now() FROM step
       ), o AS (
         INSERT INTO orders (service_order_id, location_id, fulfillment, status, rank, sequence)
         SELECT id, 'club-1', 'delivery', status, rank, 2 FROM step
       ), l AS (
         INSERT INTO live_messages (service_order_id, sequence, rank, applied_at) SELECT id, 1, rank, now() FROM step
       ), b AS (
         INSERT INTO outbox (service_order_id, sequence, location_id, fulfillment, rank)
         SELECT id, 2, 'club-1', 'delivery', rank FROM step
       )
       INSERT INTO parked_events (location_id, integration, provider_order_id, outcome, webhook_day, webhook_id, rank,
                                  native_status)
       SELECT 'club-1', 'standard', id, 'parked', now()::date, gen_random_uuid(), rank, 'X' FROM step`,
      [statuses],
    );

    expect(await migrate(url)).toContain('0012-ranks-by-ten.breaking');
    const ranks = LIFECYCLE.map(({ rank }) => rank);
    for (const table of ['orders', 'live_messages', 'outbox', 'parked_events']) {
      const { rows } = await pool.query<{ rank: number }>(`SELECT rank FROM ${table} ORDER BY rank`);
      expect(
        rows.map(({ rank }) => rank),
        table,
      ).toEqual(ranks);
    }
    for (const [nth, { status, delivery }] of LIFECYCLE.entries()) {
      expect(await cli(url, ['order', 'show', `at-${nth}`]), delivery).toMatchObject({
        order: { status, memberState: delivery },
        live: [{ memberState: delivery }, { memberState: delivery }],
      });
    }
    expect(await migrate(url), 'once').toEqual([]);
  });

  it('cannot be added to by a process of the version before that is still at work', async () => {
    const { url, pool } = await databaseAt('0011-webhooks.breaking');
    await migrate(url);
    const missing = /column .* of relation "\w+" does not exist/;
    await expect(pool.query(`UPDATE orders SET rank = 4, status = 'ready'`)).rejects.toThrow(missing);
    await expect(
      pool.query(`INSERT INTO outbox (service_order_id, sequence, location_id, fulfillment, rank)
                  VALUES ('order-1', 1, 'club-1', 'pickup', 0)`),
    ).rejects.toThrow(missing);
  });
});

it('webhooks stored while they were called deliveries are found, replayed and dropped as any other', async () => {
  const { url, pool } = await databaseAt('0010-text-indexes-by-bytes');
  const dayOf = (ago: number): string => new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10);
  const nameOf = (day: string, table = 'deliveries'): string => `${table}_${day.replaceAll('-', '')}`;
  const [OLD, OLDER] = [RETENTION_DAYS + 6, RETENTION_DAYS + 7];
  for (const ago of [0, OLD, OLDER]) {
    const day = dayOf(ago);
    await pool.query(`CREATE TABLE ${nameOf(day)} (LIKE deliveries INCLUDING ALL)`);
    // The oldest is one that was detached, and not dropped yet.
    if (ago === OLDER) continue;
    const after = dayOf(ago - 1);
    await pool.query(
      `ALTER TABLE deliveries ATTACH PARTITION ${nameOf(day)} FOR VALUES FROM ('${day}') TO ('${after}')`,
    );
  }
  const id = uuidV7();
  const body = statusWebhook({ serviceOrderId: 'order-1', status: 'READY' });
  await pool.query(
    `WITH d AS (
       INSERT INTO deliveries (day, location_id, id, integration, received_at, headers, body, events, outcome)
       VALUES ($1, 'club-1', $2, 'standard', now(), '{"host": "x"}', $3, 0, 'ignored')
     )
     INSERT INTO orders (service_order_id, location_id, integration, fulfillment, rank, sequence)
     VALUES ('order-1', 'club-1', 'standard', 'pickup', 1, 2)`,
    [dayOf(0), id, Buffer.from(JSON.stringify(body))],
  );

  await migrate(url);
  const settings = JSON.stringify({ ordersUrl: 'http://127.0.0.1:9/orders', unsigned: true });
  await cli(url, ['location', 'put', '--location', 'club-1', '--integration', 'standard', '--settings', '-'], settings);
  expect(await cli(url, ['webhook', 'list', '--location', 'club-1'])).toMatchObject([
    { webhookId: id, outcome: 'ignored' },
  ]);
  expect(await cli(url, ['webhook', 'replay', id])).toMatchObject({ replayOf: id, outcome: 'applied' });
  expect(await dropOldPartitions(pool, RETENTION_DAYS)).toEqual([
    nameOf(dayOf(OLDER), 'webhooks'),
    nameOf(dayOf(OLD), 'webhooks'),
  ]);
  const { rows } = await pool.query(`SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^deliveries'`);
  expect(rows).toEqual([]);
});
