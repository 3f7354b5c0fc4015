import { beforeEach, expect, it } from 'vitest';
import { changedOrders, type ChangedOrders } from '../../../src/core/live/changed-orders.ts';
import { testPool } from '../../support/test-pool.ts';
import { until } from '../../../world/processes/until.ts';

const pool = testPool({ max: 1 });
let look: ChangedOrders;
/** Returned in place of what Postgres said of itself. */
let said: { server?: string; horizon?: string } = {};
let fails = false;

beforeEach(async () => {
  await pool.query('TRUNCATE live_messages');
  [said, fails] = [{}, false];
  const watched = new Proxy(pool, {
    get: (target, name) => {
      if (name !== 'query') return Reflect.get(target, name) as unknown;
      return async (text: string, values: unknown[]) => {
        if (fails) throw new Error('the connection is lost');
        const { rows } = await target.query<object>(text, values);
        return { rows: rows.map((row) => ({ ...row, ...said })) };
      };
    },
  });
  look = changedOrders(watched);
});

/** Beyond every number that Postgres has given: nothing is above it. */
const AHEAD = '1000000000';

async function tell(serviceOrderId: string): Promise<void> {
  await pool.query(
    `INSERT INTO live_messages (service_order_id, sequence, rank, applied_at, published_at)
     VALUES ($1, 3, 20, now() - interval '30 s', now() - interval '30 s')`,
    [serviceOrderId],
  );
}

it('a query that looks further back reports only changes that are new', async () => {
  const now = performance.now.bind(performance);
  let later = 0;
  performance.now = () => now() + later;
  const lookFarBack = async (): Promise<ReadonlyMap<string, number | null> | undefined> => {
    later += 11_000;
    return look();
  };
  try {
    await look();
    await tell('order-1');
    expect(await lookFarBack()).toEqual(new Map([['order-1', 3]]));
    // Transactions of other databases that are open hold the numbers back.
    await until(async () => (await lookFarBack())?.size === 0);
  } finally {
    performance.now = now;
  }
});

it('a change whose commit took long is found by the next query that looks further back', async () => {
  const now = performance.now.bind(performance);
  try {
    await look();
    await look();
    await tell('order-1');
    expect(await look()).toEqual(new Map());
    performance.now = () => now() + 11_000;
    expect(await look()).toEqual(new Map([['order-1', 3]]));
  } finally {
    performance.now = now;
  }
});

it.each([
  ['a change of the server', { server: 'the one before', horizon: AHEAD }, false],
  ['a query that failed', { horizon: AHEAD }, true],
])('after %s the feed does not continue from the numbers of an earlier answer', async (_what, before, thenFails) => {
  said = before;
  await look();
  said = {};
  await tell('order-1');
  fails = thenFails;
  await look().catch(() => {});
  fails = false;
  expect(await look()).toEqual(new Map([['order-1', 3]]));
});
