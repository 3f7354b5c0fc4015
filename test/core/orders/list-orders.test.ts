import { beforeAll, expect, it } from 'vitest';
import { listOrders, type OrderFilter } from '../../../src/core/orders/list-orders.ts';
import { showOrder } from '../../../src/core/orders/show-order.ts';
import { allPages } from '../../support/all-pages.ts';
import { readPlans } from '../../support/read-plans.ts';
import { servicePools } from '../../support/test-pool.ts';

const ORDERS = 20_000;
/** Rows that a page may look at, however many there are: 2,000 placements twice, and their orders. */
const READS = 6_000;

const { pool } = servicePools();

beforeAll(async () => {
  await pool.query(
    `WITH p AS (
       INSERT INTO placements (service_order_id, location_id, state, signalled_at, deadline_at, finished_at)
       SELECT 'order-' || i, CASE WHEN i % 7000 = 1 THEN 'quiet' ELSE 'club-' || i % 100 END, CASE WHEN i % 1000 = 0 THEN 'in_doubt' ELSE 'sent' END,
              now() - make_interval(secs => i), now(), CASE WHEN i % 1000 = 0 THEN NULL ELSE now() END
       FROM generate_series(1, $1::int) AS i
     )
     INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, ended_at)
     SELECT 'order-' || i, 'K472', 'club-' || i % 100, 'standard', 'pickup', 60, now()
     FROM generate_series(1, $1::int) AS i`,
    [ORDERS],
  );
  await pool.query('ANALYZE placements, orders');
});

it.each<[string, OrderFilter, string?]>([
  ['all', {}],
  ['all, far down', {}, 'order-15000'],
  ["a location's", { locations: ['club-7'] }],
  ["a quiet location's", { locations: ['quiet'] }],
  ["several locations'", { locations: ['club-7', 'quiet', 'club-8', 'nowhere'] }],
  [
    "a hundred locations', far down",
    { locations: Array.from({ length: 100 }, (_, nth) => `club-${nth}`) },
    'order-15000',
  ],
  ["several locations' in doubt", { locations: ['club-0', 'quiet'], state: 'in_doubt' }],
  ["several locations', by a status that none has", { locations: ['club-7', 'quiet'], status: 'cancelled' }],
  ['in doubt', { state: 'in_doubt' }],
  ['for an operator', { needs: 'operator' }],
  ['that are late', { needs: 'late' }],
  ['sent', { state: 'sent' }],
  ["a location's in doubt", { locations: ['club-0'], state: 'in_doubt' }],
  ['open, of which there are none', { open: true }],
  ['by a status that none has', { status: 'cancelled' }],
  ['by a state that none has', { memberState: 'preparing' }],
  ['by an integration that none has', { integration: 'other' }],
  ['of a time long ago', { until: new Date(Date.now() - 15_000_000) }],
  ['of all time', { since: new Date(0) }],
])('a page of orders reads only few rows, however many orders there are (filter: %s)', async (_what, filter, after) => {
  const { whole, reads } = await readPlans(pool, (asked) => listOrders(asked, filter, { after, limit: 50 }));
  expect(whole).toEqual([]);
  expect(reads).toBeLessThanOrEqual(READS);
});

const idsOf = (pages: { orders: { serviceOrderId: string }[] }[]): string[] =>
  pages.flatMap(({ orders }) => orders.map(({ serviceOrderId }) => serviceOrderId));

it('the pages of a list show every match once, even if there are few matches', async () => {
  await pool.query(`UPDATE orders SET rank = 80 WHERE service_order_id IN ('order-3', 'order-19999')`);
  const pages = await allPages((after: string | undefined) =>
    listOrders(pool, { status: 'cancelled' }, { after, limit: 50 }),
  );
  expect(idsOf(pages)).toEqual(['order-3', 'order-19999']);
  expect(pages.length).toBeGreaterThan(5);
});

it.each([1, 30])('orders of several locations are listed by time (%i of the locations are busy)', async (clubs) => {
  const locations = ['quiet', 'nowhere', ...Array.from({ length: clubs }, (_, nth) => `club-${nth + 7}`)];
  const { rows } = await pool.query<{ id: string }>(
    `SELECT service_order_id AS id FROM placements WHERE location_id = ANY ($1) ORDER BY signalled_at DESC`,
    [locations],
  );
  const pages = await allPages((after: string | undefined) =>
    listOrders(pool, { locations }, { after, limit: 100 * clubs }),
  );
  expect(idsOf(pages)).toEqual(rows.map(({ id }) => id));
  expect(await listOrders(pool, { locations: [] }, { limit: 50 })).toEqual({ orders: [], next: null });
});

it('a list does not continue after an order that is unknown or of another location', async () => {
  for (const after of ['order-8', 'order-none']) {
    expect(await listOrders(pool, { locations: ['club-7'] }, { after, limit: 50 })).toBeUndefined();
  }
});

it('an order with ten thousand equal webhooks can still be read', async () => {
  await pool.query(
    `INSERT INTO status_events (service_order_id, webhook_id, status, native_status, outcome)
     SELECT 'order-5', gen_random_uuid(), 'completed', 'DONE', 'duplicate' FROM generate_series(1, 10000)`,
  );
  expect((await showOrder(pool, 'order-5'))?.history).toHaveLength(1000);
});
