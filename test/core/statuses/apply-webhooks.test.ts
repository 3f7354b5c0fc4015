import { beforeAll, expect, it } from 'vitest';
import { withClient } from '../../../src/core/postgres/transactions.ts';
import { applyWebhooks, type Applied } from '../../../src/core/statuses/apply-webhooks.ts';
import type { TranslatedWebhook } from '../../../src/core/domain/webhook.ts';
import { ensureWebhookPartitions } from '../../../src/core/postgres/ensure-webhook-partitions.ts';
import { uuidV7 } from '../../../src/core/domain/uuid-v7.ts';
import { seedOrders } from '../../support/seed-rows.ts';
import { testPool } from '../../support/test-pool.ts';
import { translatedWebhook, type Said } from '../../support/translated-webhook.ts';
import { untilLocked } from '../../support/until-locked.ts';
import { whileLocked } from '../../support/while-locked.ts';

const pool = testPool({ max: 4, options: '-c deadlock_timeout=50ms' });

beforeAll(async () => {
  await ensureWebhookPartitions(pool);
});

const layOrders = (ids: readonly string[]): Promise<void> =>
  seedOrders(pool, ids, { order: { rank: 10, sequence: 2 } });

const webhook = (...events: readonly Said[]): TranslatedWebhook => translatedWebhook(events);
const apply = (webhooks: readonly TranslatedWebhook[]): Promise<Applied> =>
  withClient(pool, (client) => applyWebhooks(client, webhooks));

it.each([16, 100])('two batches with the same %i orders in opposite order do not wait in a circle', async (count) => {
  const ids = Array.from({ length: count }, (_, nth) => `circle-of-${count}-${String(nth).padStart(2, '0')}`);
  await layOrders(ids);
  const there = ids.map((serviceOrderId) => webhook({ serviceOrderId, status: 'ready' }));
  const back = ids.toReversed().map((serviceOrderId) => webhook({ serviceOrderId, status: 'ready' }));
  // Held in the middle until both have locked what comes before it.
  const { applied } = await whileLocked(pool, ids[count / 2] ?? '', async () => {
    const both = Promise.all([apply(there), apply(back)]);
    await untilLocked(pool, 2);
    return { applied: both };
  });
  const outcomes = (await applied).map(({ events }) => [...new Set(events)].join());
  // Whichever came first moved them all.
  expect(outcomes.toSorted()).toEqual(['applied', 'duplicate']);
});

it('many events of one order in one batch move the order as separate webhooks would', async () => {
  await layOrders(['many']);
  const said = ['ready', 'received', 'ready', 'en_route', 'in_progress', 'completed', 'completed'] as const;
  const { events } = await apply(said.map((status) => webhook({ serviceOrderId: 'many', status })));
  expect(events).toEqual(['applied', 'stale', 'duplicate', 'applied', 'stale', 'applied', 'duplicate']);
  const { rows } = await pool.query(
    `SELECT status, outcome, sequence FROM status_events WHERE service_order_id = 'many' ORDER BY event_id`,
  );
  expect(rows).toEqual([
    { status: 'ready', outcome: 'applied', sequence: 3 },
    { status: 'received', outcome: 'stale', sequence: null },
    { status: 'ready', outcome: 'duplicate', sequence: null },
    { status: 'en_route', outcome: 'applied', sequence: 4 },
    { status: 'in_progress', outcome: 'stale', sequence: null },
    { status: 'completed', outcome: 'applied', sequence: 5 },
    { status: 'completed', outcome: 'duplicate', sequence: null },
  ]);
});

it('in a batch, only the live message of a replay has the time of its first arrival', async () => {
  const ids = ['fresh-before', 'replayed', 'fresh-after'];
  await layOrders(ids);
  const [before, between, after] = ids.map((serviceOrderId) => webhook({ serviceOrderId, status: 'ready' }));
  if (!before || !between || !after) throw new Error('unreachable');
  const receivedAt = new Date('2026-11-21T18:30:00Z');
  await apply([before, { ...between, replayOf: { webhookId: uuidV7(), receivedAt } }, after]);
  const { rows } = await pool.query(
    'SELECT service_order_id AS id, first_received_at FROM outbox WHERE service_order_id = ANY ($1)',
    [ids],
  );
  expect(new Map(rows.map(({ id, first_received_at: at }) => [id, at]))).toEqual(
    new Map([
      ['fresh-before', null],
      ['replayed', receivedAt],
      ['fresh-after', null],
    ]),
  );
});

it('an order has the reason of the last event that moved it, and a later duplicate adds a missing reason', async () => {
  await layOrders(['reasons', 'late']);
  await apply([
    webhook({ serviceOrderId: 'reasons', status: 'received', reason: 'first' }),
    webhook({ serviceOrderId: 'reasons', status: 'ready', reason: 'second' }),
    webhook({ serviceOrderId: 'reasons', status: 'ready', reason: 'of a duplicate' }),
    webhook({ serviceOrderId: 'reasons', status: 'received', reason: 'of a stale one' }),
    webhook({ serviceOrderId: 'late', status: 'ready' }),
  ]);
  await apply([
    webhook({ serviceOrderId: 'late', status: 'ready', reason: 'told late' }),
    webhook({ serviceOrderId: 'late', status: 'ready', reason: 'told later' }),
  ]);
  const { rows } = await pool.query(
    `SELECT service_order_id AS id, reason FROM orders WHERE service_order_id IN ('reasons', 'late') ORDER BY 1`,
  );
  expect(rows).toEqual([
    { id: 'late', reason: 'told late' },
    { id: 'reasons', reason: 'second' },
  ]);
});

it('a webhook that comes alone leaves the end of an order that was given up', async () => {
  await layOrders(['given-up']);
  const endedAt = new Date('2026-11-21T18:30:00Z');
  await pool.query(`UPDATE orders SET rank = 20, ended_at = $1 WHERE service_order_id = 'given-up'`, [endedAt]);
  const after = async (status: 'ready' | 'completed'): Promise<unknown> => {
    await apply([webhook({ serviceOrderId: 'given-up', status })]);
    return (await pool.query(`SELECT ended_at FROM orders WHERE service_order_id = 'given-up'`)).rows[0].ended_at;
  };
  expect(await after('ready')).toEqual(endedAt);
  expect(await after('completed'), 'its last status ends it').not.toEqual(endedAt);
});
