import { setImmediate as turn } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { uuidV7 } from '../../../src/core/domain/uuid-v7.ts';
import type { TranslatedWebhook } from '../../../src/core/domain/webhook.ts';
import { ensureWebhookPartitions } from '../../../src/core/postgres/ensure-webhook-partitions.ts';
import { batchWebhooks, type BatchWebhooks } from '../../../src/core/statuses/batch-webhooks.ts';
import { createDatabase } from '../../support/create-database.ts';

const LATER = Date.now() + 3_600_000;

let pool: pg.Pool;
beforeAll(async () => {
  pool = new pg.Pool({ connectionString: await createDatabase(), max: 4, options: '-c enable_seqscan=off' });
  await ensureWebhookPartitions(pool);
  await pool.query(
    `INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence)
     SELECT name, 'K472', 'club', 'standard', 'pickup', 10, 2 FROM unnest('{locked,free}'::text[]) AS name`,
  );
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});
afterAll(() => pool.end());

/** @param flushed gets the size of each batch, `refused` that of each which Postgres refused */
function batches(flushed: number[] = [], refused: number[] = []): BatchWebhooks {
  return batchWebhooks({
    pool,
    writers: 2,
    observe: (observed) => {
      if (observed.what === 'flush') flushed.push(observed.webhooks);
    },
    onApplied: () => {},
    onRefused: ({ webhooks }) => void refused.push(webhooks),
    onLocked: () => {},
  });
}

function webhook(serviceOrderId: string): TranslatedWebhook {
  return {
    id: uuidV7(),
    locationId: 'club',
    integration: 'standard',
    receivedAt: new Date(),
    headers: {},
    body: Buffer.from('{}'),
    truncated: false,
    events: [{ serviceOrderId, status: 'received', nativeStatus: 'received' }],
  };
}

it('what comes while a batch is under way goes in the next one, all together, over the same connection', async () => {
  // So none is late, however busy the machine is.
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  const lent = vi.spyOn(pool, 'connect');
  const flushed: number[] = [];
  const { accept } = batches(flushed);
  const answers = [];
  for (let nth = 0; nth < 40; nth += 1) {
    answers.push(accept(webhook('free'), LATER));
    await turn();
    if (nth === 0) while (lent.mock.calls.length === 0) await turn();
    expect(lent.mock.calls.length - flushed.length).toBeLessThanOrEqual(1);
  }
  await Promise.all(answers);
  expect(flushed[0]).toBe(1);
  expect(flushed.reduce((sum, size) => sum + size)).toBe(40);
  expect(flushed.length).toBeLessThan(40);
});

/** Has another transaction hold an order's row during `work`. */
async function besideLock(work: () => Promise<void>): Promise<void> {
  const holder = await pool.connect();
  await holder.query('BEGIN');
  await holder.query(`SELECT FROM orders WHERE service_order_id = 'locked' FOR UPDATE`);
  try {
    await work();
  } finally {
    await holder.query('ROLLBACK');
    holder.release();
  }
}

it('a batch that is late holds up nobody else', async () => {
  const { accept, drain } = batches();
  await besideLock(async () => {
    const late = accept(webhook('locked'), LATER);
    // Until it is on its way, they would be in one batch.
    for (let nth = 0; nth < 10; nth += 1) await turn();
    expect(await Promise.race([late, accept(webhook('free'), LATER)])).toMatchObject({ serviceOrderIds: ['free'] });
  });
  await drain();
});

it('a small batch is parted one by one: whoever waits in it waits for each other one once', async () => {
  const refused: number[] = [];
  const { accept } = batches([], refused);
  const answers = await Promise.all(
    ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => accept(webhook(`${id}\0`), LATER).then(({ outcome }) => outcome)),
  );
  expect(new Set(answers)).toEqual(new Set(['dropped']));
  expect(refused).toEqual([6, 1, 1, 1, 1, 1, 1]);
});

it('what is not committed by its deadline is refused, and counts no more', () =>
  besideLock(async () => {
    const { accept, drain } = batches();
    await expect(accept(webhook('locked'), Date.now() + 50)).rejects.toThrow('not committed in time');
    await drain();
  }));
