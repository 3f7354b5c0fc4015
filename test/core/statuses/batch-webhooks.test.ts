import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeAll, expect, it, vi } from 'vitest';
import type { TranslatedWebhook } from '../../../src/core/domain/webhook.ts';
import { ensureWebhookPartitions } from '../../../src/core/postgres/ensure-webhook-partitions.ts';
import { batchWebhooks, type BatchWebhooks } from '../../../src/core/statuses/batch-webhooks.ts';
import { seedOrders } from '../../support/seed-rows.ts';
import { testPool } from '../../support/test-pool.ts';
import { translatedWebhook } from '../../support/translated-webhook.ts';
import { whileLocked } from '../../support/while-locked.ts';

const LATER = Date.now() + 3_600_000;

const pool = testPool({ max: 4, options: '-c enable_seqscan=off' });
beforeAll(async () => {
  await ensureWebhookPartitions(pool);
  await seedOrders(pool, ['locked', 'free'], { order: { rank: 10, sequence: 2 } });
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

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

const webhook = (serviceOrderId: string): TranslatedWebhook =>
  translatedWebhook([{ serviceOrderId, status: 'received' }]);

it('webhooks that come during a batch are applied in the next batch, over the same connection', async () => {
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

it('a batch that waits for a lock does not delay other webhooks', async () => {
  const { accept, drain } = batches();
  await whileLocked(pool, 'locked', async () => {
    const late = accept(webhook('locked'), LATER);
    // Until it is on its way, they would be in one batch.
    for (let nth = 0; nth < 10; nth += 1) await turn();
    expect(await Promise.race([late, accept(webhook('free'), LATER)])).toMatchObject({ serviceOrderIds: ['free'] });
  });
  await drain();
});

it('a small batch that fails is repeated with one webhook at a time', async () => {
  const refused: number[] = [];
  const { accept } = batches([], refused);
  const answers = await Promise.all(
    ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => accept(webhook(`${id}\0`), LATER).then(({ outcome }) => outcome)),
  );
  expect(new Set(answers)).toEqual(new Set(['dropped']));
  expect(refused).toEqual([6, 1, 1, 1, 1, 1, 1]);
});

it('a webhook that is not committed by its deadline is refused, and its place in the queue becomes free', () =>
  whileLocked(pool, 'locked', async () => {
    const { accept, drain } = batches();
    await expect(accept(webhook('locked'), Date.now() + 50)).rejects.toThrow('not committed in time');
    await drain();
  }));
