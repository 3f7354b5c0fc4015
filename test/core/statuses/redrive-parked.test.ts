import pg from 'pg';
import { beforeAll, expect, it } from 'vitest';
import { uuidV7 } from '../../../src/core/domain/uuid-v7.ts';
import type { PosId, TranslatedWebhook } from '../../../src/core/domain/webhook.ts';
import { storeOrderRef } from '../../../src/core/transitions/placement-outcomes.ts';
import { ensureWebhookPartitions } from '../../../src/core/postgres/ensure-webhook-partitions.ts';
import { eraseOrders } from '../../../src/core/retention/erase-members.ts';
import { applyWebhooks, type Applied } from '../../../src/core/statuses/apply-webhooks.ts';
import { redriveParked, sweepParked } from '../../../src/core/statuses/redrive-parked.ts';
import { withClient } from '../../../src/core/postgres/transactions.ts';
import { seedOrders } from '../../support/seed-rows.ts';
import { testPool } from '../../support/test-pool.ts';
import { translatedWebhook, type Said } from '../../support/translated-webhook.ts';
import { untilLocked } from '../../support/until-locked.ts';
import { readPlans } from '../../support/read-plans.ts';
import { whileLocked } from '../../support/while-locked.ts';

const pool = testPool({ max: 5, options: '-c enable_seqscan=off' });

beforeAll(async () => {
  await ensureWebhookPartitions(pool);
});

const webhook = (...events: readonly Said[]): TranslatedWebhook =>
  translatedWebhook(events, { headers: { from: 'a till' }, body: Buffer.from('what it said') });

const apply = (...webhooks: readonly TranslatedWebhook[]): Promise<Applied> =>
  withClient(pool, (client) => applyWebhooks(client, webhooks));

/** An order at the POS, whose id nobody knows yet. */
async function layOrder(serviceOrderId: string): Promise<string> {
  await seedOrders(pool, [serviceOrderId], { order: { rank: 10, sequence: 2 }, placement: { requested_at: 'now' } });
  return serviceOrderId;
}

const learn = async (serviceOrderId: string, providerOrderId: string): Promise<PosId[]> =>
  (await storeOrderRef(pool, serviceOrderId, 'standard', { providerOrderId })).awaited;

const posId = (providerOrderId: string): PosId => ({ locationId: 'club-1', integration: 'standard', providerOrderId });

/** As the service does it every two seconds. */
async function sweep(): Promise<PosId[]> {
  const found = await sweepParked(pool);
  for (const each of found) await redriveParked(pool, each);
  return found;
}

const read = async (sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
  (await pool.query<Record<string, unknown>>(sql, values)).rows;

const rankOfOrder = async (id: string): Promise<unknown> =>
  (await read('SELECT rank FROM orders WHERE service_order_id = $1', [id]))[0]?.['rank'];

const waiting = (providerOrderId: string): Promise<Record<string, unknown>[]> =>
  read('SELECT rank, reason, webhook_id FROM parked_events WHERE provider_order_id = $1 ORDER BY rank', [
    providerOrderId,
  ]);

it('only one event of each status is parked for a POS id, and a later event adds the reason that this event lacks', async () => {
  await layOrder('merged');
  const first = webhook({ providerOrderId: 'm', status: 'ready' });
  const together = [
    first,
    webhook({ providerOrderId: 'm', status: 'ready' }),
    webhook({ providerOrderId: 'm', status: 'received' }),
  ];
  expect((await apply(...together)).webhooks).toEqual(['parked', 'parked', 'parked']);
  await apply(webhook({ providerOrderId: 'm', status: 'ready', reason: 'told later' }));
  await apply(webhook({ providerOrderId: 'm', status: 'ready', reason: 'told last' }));
  expect(await waiting('m')).toEqual([
    { rank: 20, reason: null, webhook_id: together[2]?.id },
    { rank: 40, reason: 'told later', webhook_id: first.id },
  ]);

  expect(await learn('merged', 'm')).toEqual([posId('m')]);
  expect(await redriveParked(pool, posId('m'))).toEqual({ count: 2, serviceOrderId: 'merged', conflicts: [] });
  expect(await read(`SELECT rank, reason, sequence FROM orders WHERE service_order_id = 'merged'`)).toEqual([
    { rank: 40, reason: 'told later', sequence: 3 },
  ]);
  const outcomes = await read('SELECT id, outcome FROM webhooks WHERE id = ANY ($1)', [together.map(({ id }) => id)]);
  expect(new Map(outcomes.map(({ id, outcome }) => [id, outcome]))).toEqual(
    new Map([
      [first.id, 'applied'],
      [together[1]?.id, 'parked'],
      [together[2]?.id, 'stale'],
    ]),
  );
});

it('the live message of a parked event has the time of its first arrival', async () => {
  await layOrder('late');
  const came = new Date('2026-11-21T18:30:00Z');
  const replayed = {
    ...webhook({ providerOrderId: 'late', status: 'received' }),
    replayOf: { webhookId: uuidV7(), receivedAt: came },
  };
  await apply(replayed);
  await apply(webhook({ providerOrderId: 'late', status: 'ready' }));
  const [{ parked_at: parkedAt } = {}] = await read('SELECT parked_at FROM parked_events WHERE rank = 40');
  await learn('late', 'late');
  await redriveParked(pool, posId('late'));
  await apply(webhook({ providerOrderId: 'late', status: 'completed' }));
  expect(
    await read(`SELECT rank, first_received_at FROM outbox WHERE service_order_id = 'late' ORDER BY sequence`),
  ).toEqual([
    { rank: 20, first_received_at: came },
    { rank: 40, first_received_at: parkedAt },
    { rank: 60, first_received_at: null },
  ]);
});

it('a POS id without parked events causes no re-drive', async () => {
  await layOrder('lonely');
  expect(await learn('lonely', 'l')).toEqual([]);
  expect((await apply(webhook({ serviceOrderId: 'lonely', providerOrderId: 'l-2', status: 'ready' }))).awaited).toEqual(
    [],
  );
  await apply(webhook({ providerOrderId: 'l-3', status: 'completed' }));
  expect((await apply(webhook({ serviceOrderId: 'lonely', providerOrderId: 'l-3', status: 'ready' }))).awaited).toEqual(
    [posId('l-3')],
  );
});

it('an event that is parked at the moment when its POS id is committed is applied by the sweep', async () => {
  await Promise.all(['raced', 'other'].map(layOrder));
  await sweep();
  const { parking } = await whileLocked(pool, 'other', async () => {
    // Has looked for the POS id in vain, and waits now.
    const applying = apply(
      webhook({ providerOrderId: 'r', status: 'ready' }, { serviceOrderId: 'other', status: 'ready' }),
    );
    await untilLocked(pool);
    // Looks for what waits in vain, since nothing of that is committed.
    expect(await learn('raced', 'r')).toEqual([]);
    expect(await sweep(), 'nor does a sweep in between find it').toEqual([]);
    return { parking: applying };
  });
  expect((await parking).events).toEqual(['parked', 'applied']);
  expect(await rankOfOrder('raced')).toBe(10);
  expect(await sweep()).toEqual([posId('r')]);
  expect(await rankOfOrder('raced')).toBe(40);
  expect(await sweep()).toEqual([]);
});

it('an event whose re-drive died is applied by the sweep, however late the sweep is', async () => {
  await layOrder('forgotten');
  await apply(webhook({ providerOrderId: 'f', status: 'ready' }));
  await learn('forgotten', 'f');
  await pool.query(
    `WITH ids AS (UPDATE provider_orders SET created_at = now() - interval '3 hours' WHERE provider_order_id = 'f')
     UPDATE parked_sweep SET swept_until = now() - interval '3 hours'`,
  );
  expect(await sweep()).toEqual([posId('f')]);
  expect(await rankOfOrder('forgotten')).toBe(40);
  expect(await sweep()).toEqual([]);
  const [mark] = await read(`SELECT now() - swept_until < interval '1 min' AS recent FROM parked_sweep`);
  expect(mark).toEqual({ recent: true });
});

it('after the clock was set back, a sweep finds POS ids that are stored from then on', async () => {
  await layOrder('back');
  await pool.query(`UPDATE parked_sweep SET swept_until = now() + interval '1 hour'`);
  await apply(webhook({ providerOrderId: 'b', status: 'ready' }));
  await learn('back', 'b');
  expect(await sweep()).toEqual([posId('b')]);
});

it('a locked order does not delay other orders in the sweep, and is applied later', async () => {
  await Promise.all(['locked', 'free'].map(layOrder));
  await apply(webhook({ providerOrderId: 'lk', status: 'ready' }), webhook({ providerOrderId: 'fr', status: 'ready' }));
  await learn('locked', 'lk');
  await learn('free', 'fr');
  await whileLocked(pool, 'locked', async () => {
    expect(await sweep()).toEqual([posId('fr')]);
    expect(await sweep()).toEqual([]);
  });
  expect(await sweep()).toEqual([posId('lk')]);
  expect([await rankOfOrder('locked'), await rankOfOrder('free')]).toEqual([40, 40]);
});

it('a process that stops in the middle of a re-drive holds no lock', async () => {
  await layOrder('held');
  await apply(webhook({ providerOrderId: 'h', status: 'ready' }));
  await learn('held', 'h');
  const states: unknown[] = [];
  const single = new pg.Pool({ ...pool.options, max: 1 });
  single.on('connect', (client) => {
    const query = client.query.bind(client) as (...all: unknown[]) => Promise<unknown>;
    client.query = (async (...all: unknown[]) => {
      const answer = await query(...all);
      // What would stay for as long as the process is frozen.
      const { rows } = (await query('SELECT pg_backend_pid() AS pid')) as pg.QueryResult<{ pid: number }>;
      states.push(...(await read('SELECT state, xact_start FROM pg_stat_activity WHERE pid = $1', [rows[0]?.pid])));
      return answer;
    }) as typeof client.query;
  });
  expect(await redriveParked(single, posId('h'))).toMatchObject({ count: 1 });
  await single.end();
  expect(states.length).toBeGreaterThan(0);
  for (const state of states) expect(state).toEqual({ state: 'idle', xact_start: null });
});

it('processes that re-drive the same POS id at the same time apply its events only once', async () => {
  await layOrder('twice');
  await apply(webhook({ providerOrderId: 't', status: 'ready' }, { providerOrderId: 't', status: 'completed' }));
  await learn('twice', 't');
  const counts = await Promise.all([1, 2, 3].map(async () => (await redriveParked(pool, posId('t'))).count));
  expect(counts.toSorted((a, b) => a - b)).toEqual([0, 0, 2]);
  expect(await read(`SELECT count(*)::int AS n FROM status_events WHERE service_order_id = 'twice'`)).toEqual([
    { n: 2 },
  ]);
});

it('an order is erased with the webhooks of its parked events', async () => {
  await layOrder('erased');
  const parked = webhook({ providerOrderId: 'e', status: 'completed', reason: 'Ada waits outside' });
  await apply(parked);
  await learn('erased', 'e');
  await pool.query(`UPDATE orders SET ended_at = now() WHERE service_order_id = 'erased'`);
  expect(await withClient(pool, (client) => eraseOrders(client, ['erased']))).toBe(1);
  expect(await waiting('e')).toMatchObject([{ reason: null }]);
  expect(await read('SELECT body, headers FROM webhooks WHERE id = $1', [parked.id])).toEqual([
    { body: Buffer.alloc(0), headers: {} },
  ]);
  await redriveParked(pool, posId('e'));
});

it('the sweep reads only POS ids that are new since its last run, and no other parked events', async () => {
  await sweep();
  await pool.query(
    `INSERT INTO parked_events (location_id, integration, provider_order_id, rank, webhook_day, webhook_id, native_status)
     SELECT 'club-1', 'standard', 'till-' || n, 60, now()::date, gen_random_uuid(), 'x' FROM generate_series(1, 20000) AS n`,
  );
  await pool.query(
    `INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id, created_at)
     SELECT 'club-1', 'standard', 'old-' || n, 'old-' || n, now() - interval '1 hour' FROM generate_series(1, 20000) AS n`,
  );
  await pool.query('ANALYZE');
  await pool.query(`UPDATE parked_sweep SET swept_until = now() - interval '2 s'`);
  const { reads, whole } = await readPlans(pool, (recording) => sweepParked(recording));
  expect(reads).toBeLessThan(100);
  expect(whole.filter((table) => table !== 'parked_sweep')).toEqual([]);
});
