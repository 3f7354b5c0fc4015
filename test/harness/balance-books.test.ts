import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { balanceBooks, emptyBooks } from '../../tools/bench/measure/balance-books.ts';
import { orderId, seedHistory, seedOrders } from '../../tools/bench/load/seed-orders.ts';
import { uuidV7 } from '../../src/core/domain/uuid-v7.ts';
import { applyWebhooks } from '../../src/core/statuses/apply-webhooks.ts';
import type { TranslatedWebhook } from '../../src/core/domain/webhook.ts';
import { ensureWebhookPartitions } from '../../src/core/postgres/ensure-webhook-partitions.ts';
import { withClient } from '../../src/core/postgres/transactions.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';

const REQUESTS = 10;
const LOCATION = { locationId: 'club-1', token: '', secret: '' };

let databaseUrl: string;
let pool: pg.Pool;
beforeAll(async () => {
  databaseUrl = await createDatabase();
  pool = new pg.Pool({ connectionString: databaseUrl, max: 2 });
  await ensureWebhookPartitions(pool);
});
afterAll(() => pool.end());

/** Ten webhooks, each of which moves an order of its own; the last may be dropped. */
async function load(last: Partial<TranslatedWebhook> = {}, history = 0): Promise<{ steps: number }> {
  await seedOrders(databaseUrl, [LOCATION], REQUESTS);
  const before = await emptyBooks(databaseUrl);
  if (history > 0) await seedHistory(databaseUrl, REQUESTS, history);
  const webhooks = Array.from({ length: REQUESTS }, (_, nth) => webhook(nth));
  await withClient(pool, (client) =>
    applyWebhooks(
      client,
      webhooks.map((each, nth) => (nth === REQUESTS - 1 ? { ...each, ...last } : each)),
    ),
  );
  return before;
}

function webhook(nth: number): TranslatedWebhook {
  return {
    id: uuidV7(),
    locationId: LOCATION.locationId,
    integration: 'standard',
    receivedAt: new Date(),
    headers: {},
    body: Buffer.from('{}'),
    truncated: false,
    events: [{ serviceOrderId: orderId(nth), status: 'received', nativeStatus: 'received' }],
  };
}

const all200 = { 200: REQUESTS };
const DROPPED = { events: [], dropped: { reason: 'unreadable', cause: { code: 'unreadable' } } } as const;
const about = { from: 0, requests: REQUESTS, answers: all200, plan: 'spread' } as const;

const expectUnbalanced = (books: Parameters<typeof balanceBooks>[1]): Promise<void> =>
  expect(balanceBooks(databaseUrl, books)).rejects.toThrow('do not balance');

it('books balance when every webhook was answered and is in all tables', async () => {
  const before = await load();
  await balanceBooks(databaseUrl, { ...before, ...about });
  expect(await emptyBooks(databaseUrl)).toEqual({ steps: before.steps + REQUESTS });
});

it('books balance for orders with a history only if the history is counted once', async () => {
  const before = await load({}, 3);
  await balanceBooks(databaseUrl, { ...before, ...about, history: 3 * REQUESTS });
  await expectUnbalanced({ ...before, ...about });
  const without = await load();
  await expectUnbalanced({ ...without, ...about, history: 3 * REQUESTS });
});

it('books of a load with poison balance only if exactly the poison was dropped', async () => {
  const poisoned = { ...about, from: 41, plan: 'poison' } as const;
  const before = await load(DROPPED);
  await balanceBooks(databaseUrl, { ...before, ...poisoned });
  await expectUnbalanced({ ...before, ...about });
  await expectUnbalanced({ ...before, ...poisoned, from: 40 });
  const all = await load();
  await expectUnbalanced({ ...all, ...poisoned });
});

describe('books do not balance when', () => {
  const answers: [string, Record<string, number>][] = [
    ['an answer is missing', { 200: REQUESTS - 1 }],
    ['there is one answer too many', { 200: REQUESTS + 1 }],
    ['a webhook was refused', { 200: REQUESTS - 1, 500: 1 }],
    ['no webhook was answered', {}],
  ];
  it.each(answers)('%s', async (_, given) => {
    const before = await load();
    await expectUnbalanced({ ...before, ...about, answers: given });
  });

  const one = `service_order_id = '${orderId(3)}'`;
  const rows: [string, string][] = [
    ['a webhook is missing', `DELETE FROM webhooks WHERE id = (SELECT max(id::text)::uuid FROM webhooks)`],
    [
      'there is one webhook too many',
      `INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, body, events, outcome)
       VALUES (now()::date, 'club-1', gen_random_uuid(), 'standard', now(), '{}', '', 1, 'applied')`,
    ],
    [
      'a valid webhook was dropped',
      `UPDATE webhooks SET outcome = 'dropped' WHERE id = (SELECT max(id::text)::uuid FROM webhooks)`,
    ],
    ['a row of the history is missing', `DELETE FROM status_events WHERE ${one}`],
    [
      'there is one row of the history too many',
      `INSERT INTO status_events (service_order_id, status, native_status, outcome)
       VALUES ('${orderId(3)}', 'received', 'received', 'stale')`,
    ],
    [
      'a webhook did not move its order',
      `WITH e AS (UPDATE status_events SET outcome = 'stale' WHERE ${one}), b AS (DELETE FROM outbox WHERE ${one})
       UPDATE orders SET sequence = sequence - 1 WHERE ${one}`,
    ],
    [
      'a webhook has no row in the history and none in the outbox',
      `WITH e AS (DELETE FROM status_events WHERE ${one}), b AS (DELETE FROM outbox WHERE ${one})
       UPDATE orders SET sequence = sequence - 1 WHERE ${one}`,
    ],
    ['a row of the outbox is missing', `DELETE FROM outbox WHERE ${one}`],
    ['the outbox is empty', 'DELETE FROM outbox'],
    [
      'there is one row of the outbox too many',
      `INSERT INTO outbox (service_order_id, sequence, rank) VALUES ('${orderId(3)}', 9, 40)`,
    ],
    ['an order did not move', `UPDATE orders SET sequence = sequence - 1 WHERE ${one}`],
    ['an order moved once too often', `UPDATE orders SET sequence = sequence + 1 WHERE ${one}`],
  ];
  it.each(rows)('%s', async (_, sql) => {
    const before = await load();
    await pool.query(sql);
    await expectUnbalanced({ ...before, ...about });
  });
});
