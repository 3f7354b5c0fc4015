import { beforeAll, expect, it } from 'vitest';
import { claimRefreshes, endRefresh } from '../../../src/core/cancellations/refresh-order.ts';
import { lockOrder, mayHaveTicket } from '../../../src/core/cancellations/changed-order.ts';
import { recordSignal } from '../../../src/core/signals/record-signals.ts';
import { inTransaction } from '../../../src/core/postgres/transactions.ts';
import { seedOrders } from '../../support/seed-rows.ts';
import { testPool } from '../../support/test-pool.ts';
import { untilLocked } from '../../support/until-locked.ts';

const ORDER = 'order-1';
const pool = testPool();

beforeAll(() => seedOrders(pool, [ORDER], { order: { rank: 0, sequence: 1 }, placement: { deadline_at: 'tomorrow' } }));

it('a signal during a refresh causes exactly one more refresh', async () => {
  await recordSignal(pool, ORDER, 60);
  const [look] = await claimRefreshes(pool, 10);
  if (look === undefined) throw new Error('there is no look');
  await recordSignal(pool, ORDER, 60);
  // One at a time.
  expect(await claimRefreshes(pool, 10)).toEqual([]);
  await endRefresh(pool, look);
  expect(await claimRefreshes(pool, 10)).toMatchObject([{ serviceOrderId: ORDER }]);
});

it('a transaction that waited for the lock of an order sees that another has begun to send it', async () => {
  const begun = Promise.withResolvers<undefined>();
  const sending = inTransaction(pool, async (client) => {
    await client.query('SELECT FROM orders WHERE service_order_id = $1 FOR UPDATE', [ORDER]);
    await client.query('UPDATE placements SET attempts = 1 WHERE service_order_id = $1', [ORDER]);
    begun.resolve(undefined);
    await untilLocked(pool);
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
