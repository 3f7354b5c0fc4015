import pg from 'pg';
import { beforeAll, expect, it, vi } from 'vitest';
import type { StatusEvent } from '../../../src/core/domain/order.ts';
import { ensureWebhookPartitions } from '../../../src/core/postgres/ensure-webhook-partitions.ts';
import { batchWebhooks, type Accepted } from '../../../src/core/statuses/batch-webhooks.ts';
import { BATCH_WRITERS } from '../../../src/database/open-database.ts';
import { seedOrders } from '../../support/seed-rows.ts';
import { servicePools } from '../../support/test-pool.ts';
import { translatedWebhook } from '../../support/translated-webhook.ts';
import { beside } from '../../support/while-locked.ts';

/** Nothing here is refused for being late, however busy the machine is. */
const LATER = Date.now() + 3_600_000;

const { pool, flushPool } = servicePools(10);
/** How often a webhook was found to wait for a lock that was not known. */
let found = 0;
let accept: (event: Partial<StatusEvent>, locationId?: string) => Promise<Accepted>;

beforeAll(async () => {
  await ensureWebhookPartitions(pool);
  const batches = batchWebhooks({
    pool: flushPool,
    writers: BATCH_WRITERS,
    observe: () => {},
    onApplied: () => {},
    onRefused: () => {},
    onLocked: () => (found += 1),
  });
  accept = (event, locationId = 'club-1') =>
    batches.accept(translatedWebhook([{ status: 'received', ...event }], { locationId }), LATER);
});

/** Orders that were placed and sent. */
const seed = (ids: string[], locationId = 'club-1'): Promise<void> =>
  seedOrders(pool, ids, {
    locationId,
    order: { rank: 10, sequence: 2 },
    placement: { state: 'sent', finished_at: 'now' },
  });
const numbered = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, nth) => `${prefix}-${nth}`);

const ROWS: [what: string, name: string, lock: string, about: Partial<StatusEvent>][] = [
  [
    'the row of its order',
    'row',
    `SELECT FROM orders WHERE service_order_id = 'row' FOR UPDATE`,
    { serviceOrderId: 'row' },
  ],
  [
    'the row of an order, where the webhook has only the POS id',
    'by-pos-id',
    `SELECT FROM orders WHERE service_order_id = 'by-pos-id' FOR NO KEY UPDATE`,
    { providerOrderId: 'pos-by-pos-id' },
  ],
  [
    'the row of its placement, which stores the POS id',
    'placement',
    `UPDATE placements SET attempts = 1 WHERE service_order_id = 'placement'`,
    { serviceOrderId: 'placement', providerOrderId: 'pos-1' },
  ],
  [
    'a POS id that is being stored',
    'pos-id',
    `INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id)
     VALUES ('club-1', 'standard', 'pos-2', 'somebody')`,
    { serviceOrderId: 'pos-id', providerOrderId: 'pos-2' },
  ],
];

it.each(ROWS)('a webhook that waits for %s does not delay other webhooks', async (_what, name, lock, about) => {
  const [ofClub, ofNeighbour] = [numbered(`${name}-club`, 10), numbered(`${name}-other`, 10)];
  await Promise.all([seed([name, ...ofClub]), seed(ofNeighbour, 'neighbour')]);
  await pool.query(
    `INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id)
     VALUES ('club-1', 'standard', $1, $2)`,
    [`pos-${name}`, name],
  );
  const before = found;
  const own: Promise<Accepted>[] = [];
  const free = new AbortController();
  await beside(pool, lock, async () => {
    for (const [nth, serviceOrderId] of ofClub.entries()) {
      own.push(accept(about));
      void own.at(-1)?.then(() => free.abort());
      const others = [accept({ serviceOrderId }), accept({ serviceOrderId: ofNeighbour[nth] }, 'neighbour')];
      expect((await Promise.all(others)).map(({ outcome }) => outcome)).toEqual(['applied', 'applied']);
    }
    expect(free.signal.aborted).toBe(false);
    // The first of them costs a wait, perhaps at both writers; the rest go aside at once.
    expect(found - before).toBeLessThanOrEqual(3);
  });
  const outcomes = (await Promise.all(own)).map(({ outcome }) => outcome);
  expect(outcomes.toSorted()).toEqual(['applied', ...Array.from({ length: 9 }, () => 'duplicate')]);
});

it('a batch waits briefly for a lock, because a sender gives up after 1.5 s', async () => {
  const { rows } = await flushPool.query<{ ms: number }>(
    `SELECT extract(epoch FROM current_setting('lock_timeout')::interval)::float * 1000 AS ms`,
  );
  expect(rows[0]?.ms).toBeGreaterThan(0);
  expect(rows[0]?.ms).toBeLessThanOrEqual(200);
});

it('locked orders that come one by one hold each batch writer for one lock time-out only', async () => {
  const [ofClub, ofNeighbour] = [numbered('single', BATCH_WRITERS + 1), numbered('single-other', BATCH_WRITERS + 1)];
  await Promise.all([seed(ofClub), seed(ofNeighbour, 'neighbour')]);
  const own: Promise<Accepted>[] = [];
  await beside(
    pool,
    `SELECT FROM orders WHERE service_order_id LIKE 'single-%' AND location_id = 'club-1' FOR UPDATE`,
    async () => {
      for (const [nth, serviceOrderId] of ofNeighbour.entries()) {
        own.push(accept({ serviceOrderId: ofClub[nth] }));
        // It is taken alone: a batch of several finds out which of them is locked.
        for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
        expect(await accept({ serviceOrderId }, 'neighbour')).toMatchObject({ outcome: 'applied' });
      }
    },
  );
  await Promise.all(own);
});

it('hundreds of locked orders do not delay webhooks about other orders', async () => {
  const [ofClub, ofNeighbour] = [numbered('crowd', 150), numbered('crowd-other', 30)];
  await Promise.all([seed(ofClub), seed(ofNeighbour, 'neighbour')]);
  const asked = vi.spyOn(pg.Client.prototype, 'query');
  const own: Promise<Accepted>[] = [];
  await beside(
    pool,
    `SELECT FROM orders WHERE service_order_id LIKE 'crowd-%' AND location_id = 'club-1' FOR UPDATE`,
    async () => {
      for (const [nth, serviceOrderId] of ofNeighbour.entries()) {
        for (const id of ofClub.slice(5 * nth, 5 * nth + 5)) own.push(accept({ serviceOrderId: id }));
        expect(await accept({ serviceOrderId }, 'neighbour')).toMatchObject({ outcome: 'applied' });
      }
    },
  );
  await Promise.all(own);
  // Without a look at what is locked, each batch would wait in vain.
  const inVain = asked.mock.settledResults.filter(({ value }) => (value as { code?: string }).code === '55P03');
  expect(inVain.length).toBeLessThanOrEqual(4);
  asked.mockRestore();
});
