import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { orderFeed } from '../../../src/core/live/order-feed.ts';
import { createDatabase } from '../../support/create-database.ts';
import { until } from '../../support/until.ts';

let pool: pg.Pool;
let asked = 0;

beforeAll(async () => {
  pool = new pg.Pool({ connectionString: await createDatabase(), max: 2 });
  await pool.query(
    `WITH p AS (
       INSERT INTO placements (service_order_id, location_id, deadline_at)
       SELECT 'order-' || i, 'club-1', now() FROM generate_series(1, 3) AS i
     )
     INSERT INTO orders (service_order_id, location_id, fulfillment, sequence)
     SELECT 'order-' || i, 'club-1', 'pickup', 1 FROM generate_series(1, 3) AS i`,
  );
});
afterAll(() => pool?.end());

const counting = (): pg.Pool =>
  new Proxy(pool, {
    get: (target, name) => {
      if (name !== 'query') return Reflect.get(target, name) as unknown;
      return (query: pg.QueryConfig) => {
        asked += 1;
        return target.query(query);
      };
    },
  });

it('one statement a second asks for all orders that are followed, and none when nobody follows', async () => {
  const following = orderFeed({ pool: counting(), log: { error: () => {} } });
  following.wake();
  await sleep(1_200);
  expect(asked, 'nobody follows').toBe(0);

  const heard: string[] = [];
  const leave = ['order-1', 'order-1', 'order-2', 'order-3'].map((id, nth) =>
    following.follow(id, 0, ({ messages }) =>
      heard.push(...messages.map(({ sequence }) => `${nth}:${id}:${sequence}`)),
    ),
  );
  asked = 0;
  await sleep(2_500);
  expect(asked).toBeGreaterThanOrEqual(2);
  expect(asked).toBeLessThanOrEqual(3);

  await pool.query(`INSERT INTO outbox (service_order_id, sequence, rank) VALUES ('order-1', 1, 0), ('order-3', 1, 0)`);
  const began = performance.now();
  for (let i = 0; i < 100; i++) following.wake();
  await until(() => heard.length === 3);
  expect(performance.now() - began, 'woken, not polled').toBeLessThan(500);
  expect(heard.toSorted()).toEqual(['0:order-1:1', '1:order-1:1', '3:order-3:1']);

  for (const each of leave) each();
  await sleep(200);
  asked = 0;
  await sleep(1_200);
  expect(asked, 'all have left').toBe(0);
  await following.stop();
});

it('one that joins while Postgres is asked on behalf of another misses nothing', async () => {
  await pool.query(
    `INSERT INTO outbox (service_order_id, sequence, rank)
     SELECT 'order-2', i, (i - 1) * 10 FROM generate_series(1, 3) AS i`,
  );
  const heard: Record<string, number[]> = { first: [], second: [] };
  let join = (): void => {};
  const slow = new Proxy(pool, {
    get: (target, name) => {
      if (name !== 'query') return Reflect.get(target, name) as unknown;
      return async (query: pg.QueryConfig) => {
        const answer = await target.query(query);
        join();
        return answer;
      };
    },
  });
  const following = orderFeed({ pool: slow, log: { error: () => {} } });
  const follow = (name: string, after: number): void =>
    void following.follow('order-2', after, ({ messages }) =>
      heard[name]?.push(...messages.map(({ sequence }) => sequence)),
    );
  follow('first', 2);
  join = () => {
    join = () => {};
    follow('second', 0);
  };
  following.wake();
  await until(() => heard['second']?.length === 3);
  expect(heard).toEqual({ first: [3], second: [1, 2, 3] });
  await following.stop();
});
