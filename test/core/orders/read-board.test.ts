import { beforeAll, expect, it } from 'vitest';
import { readBoard, type BoardRead, type Seen } from '../../../src/core/orders/read-board.ts';
import { sampleAttention } from '../../../src/core/orders/sample-attention.ts';
import { readPlans } from '../../support/read-plans.ts';
import { seedOrders } from '../../support/seed-rows.ts';
import { servicePools } from '../../support/test-pool.ts';
import { until } from '../../../world/processes/until.ts';

/** Of them 400 are open, and 3,000 ended within a day. */
const ORDERS = 20_000;

const { pool } = servicePools();

beforeAll(async () => {
  await pool.query(
    `WITH p AS (
       INSERT INTO placements (service_order_id, location_id, state, signalled_at, deadline_at, finished_at)
       SELECT 'order-' || i, 'club-' || i % 100, 'sent', now() - make_interval(secs => i * 28), now(),
              now() - make_interval(secs => i * 28)
       FROM generate_series(1, $1::int) AS i
     ), h AS (
       INSERT INTO status_events (service_order_id, status, native_status, outcome, conflict)
       SELECT 'order-' || i, 'cancelled', 'X', 'stale', i % 1000 = 0 FROM generate_series(1, $1::int) AS i
     )
     INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, ended_at)
     SELECT 'order-' || i, 'K472', 'club-' || i % 100, 'standard', 'pickup', 60,
            CASE WHEN i % 50 > 0 THEN now() - make_interval(secs => i * 28) END
     FROM generate_series(1, $1::int) AS i`,
    [ORDERS],
  );
  await pool.query(
    `INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, body, events, outcome, reason)
     SELECT (now() AT TIME ZONE 'UTC')::date, 'club-' || i % 100, gen_random_uuid(), 'standard', now(), '{}', 'x', 1,
            CASE WHEN i % 100 = 0 THEN 'dropped' ELSE 'applied' END, 'no'
     FROM generate_series(1, $1::int) AS i`,
    [ORDERS],
  );
  await pool.query('ANALYZE placements, orders, status_events, webhooks');
});

const idsOf = ({ orders }: BoardRead): string[] => orders.map(({ serviceOrderId }) => serviceOrderId).toSorted();

it('the whole board reads only orders on the board, however many are stored', async () => {
  const { whole, reads } = await readPlans(pool, (asked) => readBoard(asked));
  expect(whole).toEqual([]);
  expect(reads).toBeLessThan(3 * (400 + 2_001) + 100);
});

it('an update of the board reads only open and recently ended orders, or nothing if nothing has changed', async () => {
  // Other databases of the same Postgres commit too: sooner or later there is a moment in which none does.
  const seen = await until(async () => {
    const { rows } = await pool.query<Seen>(
      'SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS horizon, now()::text AS at',
    );
    const [now = expect.fail()] = rows;
    return (await readPlans(pool, (asked) => readBoard(asked, now))).reads === 0 && now;
  });
  await pool.query(`UPDATE orders SET rank = 50 WHERE service_order_id = 'order-50'`);
  const { whole, reads } = await readPlans(pool, (asked) => readBoard(asked, seen));
  expect(whole).toEqual([]);
  expect(reads).toBeLessThan(400 + 2_000 + 200);
});

it('needs are found by indexes, however much is stored', async () => {
  const { whole, reads } = await readPlans(pool, (asked) => sampleAttention(asked));
  expect(whole).toEqual([]);
  // Conflicts 20, dropped 200 three times, open 400 twice, and the leaps.
  expect(reads).toBeLessThan(2_500);
});

it('the board shows a change once it is committed, however long ago its transaction began', async () => {
  const client = await pool.connect();
  await client.query('BEGIN');
  await client.query(`UPDATE orders SET rank = 40, updated_at = now() WHERE service_order_id = 'order-100'`);
  const before = await readBoard(pool);
  await pool.query(`UPDATE orders SET rank = 40 WHERE service_order_id = 'order-150'`);
  const between = await readBoard(pool, before.seen);
  const statusIn = ({ orders }: BoardRead): unknown =>
    orders.find(({ serviceOrderId }) => serviceOrderId === 'order-100')?.status;
  expect(idsOf(between)).toContain('order-150');
  expect(statusIn(between)).not.toBe('ready');
  await client.query('COMMIT');
  client.release();
  expect(statusIn(await readBoard(pool, between.seen))).toBe('ready');
});

it.each([
  ['gets a new status', `UPDATE orders SET rank = 50 WHERE service_order_id = $1`, 'order-200'],
  ['ends', `UPDATE orders SET rank = 60, ended_at = now() WHERE service_order_id = $1`, 'order-250'],
  ['is given up', `UPDATE orders SET ended_at = now() WHERE service_order_id = $1`, 'order-300'],
  ['gets a conflict after its end', `UPDATE orders SET rank = 80 WHERE service_order_id = $1`, 'order-3'],
  ['gets its first signal', `INSERT INTO placements (service_order_id, deadline_at) VALUES ($1, now())`, 'new-1'],
  [
    'fails before it was fetched',
    `INSERT INTO placements (service_order_id, state, problem, deadline_at, finished_at)
     VALUES ($1, 'failed', 'no such order', now(), now())`,
    'new-2',
  ],
  [
    'waits for an operator',
    `INSERT INTO placements (service_order_id, state, deadline_at, next_attempt_at)
     VALUES ($1, 'in_doubt', now(), 'infinity')`,
    'new-3',
  ],
])('the board shows an order that %s', async (_what, change, id) => {
  const { seen } = await readBoard(pool);
  await pool.query(change, [id]);
  // What changed before may come as well, while anybody's transaction goes on since then.
  expect(idsOf(await readBoard(pool, seen))).toContain(id);
});

it('an order that leaves the indexes of the board is listed as hidden, and can still be read by its id', async () => {
  const before = await readBoard(pool);
  await pool.query(`UPDATE orders SET erased_at = now() WHERE service_order_id = 'order-350'`);
  const erased = await readBoard(pool, before.seen);
  expect(erased.hidden).toContain('order-350');
  await pool.query(`UPDATE orders SET ended_at = now() WHERE service_order_id = 'order-350'`);
  expect(idsOf(await readBoard(pool, erased.seen))).not.toContain('order-350');
  const asked = await readBoard(pool, erased.seen, ['order-350']);
  expect(asked.orders.find(({ serviceOrderId }) => serviceOrderId === 'order-350')?.endedAt).toEqual(
    expect.any(String),
  );

  const order = { ended_at: new Date(Date.now() - 3_600_000) };
  await seedOrders(pool, ['old-doubt'], { order, placement: { state: 'in_doubt' } });
  expect((await readBoard(pool, erased.seen)).hidden).toContain('old-doubt');
});
