import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { claimRefreshes, endRefresh } from '../../../src/core/cancellations/refresh-order.ts';
import { lockOrder, mayHaveTicket } from '../../../src/core/cancellations/changed-order.ts';
import { recordSignal } from '../../../src/core/placements/record-signal.ts';
import { inTransaction } from '../../../src/core/postgres/transactions.ts';
import { createDatabase } from '../../support/create-database.ts';
import { until } from '../../support/until.ts';

const ORDER = 'order-1';
let pool: pg.Pool;

beforeAll(async () => {
  pool = new pg.Pool({ connectionString: await createDatabase() });
  await pool.query(
    `WITH p AS (INSERT INTO placements (service_order_id, location_id, deadline_at)
                VALUES ($1, 'club-1', now() + interval '1 h'))
     INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, rank, sequence)
     VALUES ($1, 'K472', 'club-1', 'pickup', 0, 1)`,
    [ORDER],
  );
});
afterAll(() => pool.end());

it('a signal that comes during a look has the order looked at once more', async () => {
  await recordSignal(pool, ORDER, 60);
  const [look] = await claimRefreshes(pool, 10);
  if (look === undefined) throw new Error('there is no look');
  await recordSignal(pool, ORDER, 60);
  // One at a time.
  expect(await claimRefreshes(pool, 10)).toEqual([]);
  await endRefresh(pool, look);
  expect(await claimRefreshes(pool, 10)).toMatchObject([{ serviceOrderId: ORDER }]);
});

it('whoever waited for the lock sees that the order began to be sent meanwhile', async () => {
  const begun = Promise.withResolvers<undefined>();
  const sending = inTransaction(pool, async (client) => {
    await client.query('SELECT FROM orders WHERE service_order_id = $1 FOR UPDATE', [ORDER]);
    await client.query('UPDATE placements SET attempts = 1 WHERE service_order_id = $1', [ORDER]);
    begun.resolve(undefined);
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await until(async () => (await pool.query(waiting)).rowCount !== 0);
    await client.query(
      `INSERT INTO placement_attempts (service_order_id, attempt, call) VALUES ($1, 1, 'createOrder')`,
      [ORDER],
    );
  });
  await begun.promise;
  const known = await inTransaction(pool, async (client) => lockOrder(client, ORDER));
  await sending;
  expect(known !== undefined && mayHaveTicket(known)).toBe(true);
});
