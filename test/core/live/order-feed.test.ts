import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { orderFeed, type OrderFeed } from '../../../src/core/live/order-feed.ts';
import { createDatabase } from '../../../world/postgres/create-database.ts';
import { changedOrders } from '../../../src/core/live/changed-orders.ts';
import { readPlans } from '../../support/read-plans.ts';
import { seedOrders } from '../../support/seed-rows.ts';
import { until } from '../../../world/processes/until.ts';

let pool: pg.Pool;
let other: pg.Client;
let feed: OrderFeed;
/** The texts that Postgres was asked. */
let asked: string[] = [];
/** Called after each answer of Postgres, before the feed has it. */
let onAnswer: (text: string) => Promise<void> | void = () => {};
let heard: Record<string, (number | string)[]> = {};
let following: (() => void)[] = [];

beforeAll(async () => {
  const connectionString = await createDatabase();
  pool = new pg.Pool({ connectionString, max: 4 });
  other = new pg.Client({ connectionString });
  await other.connect();
  const watched = new Proxy(pool, {
    get: (target, name) => {
      if (name !== 'query') return Reflect.get(target, name) as unknown;
      return async (query: pg.QueryConfig | string, values?: unknown[]) => {
        const answer = await target.query(query as string, values);
        const text = typeof query === 'string' ? query : query.text;
        asked.push(text);
        await onAnswer(text);
        return answer;
      };
    },
  });
  feed = orderFeed({ pool: watched, log: { error: () => {} } });
});
afterAll(async () => {
  await feed?.stop();
  await other?.end();
  await pool?.end();
});
beforeEach(async () => {
  for (const leave of following.splice(0)) leave();
  heard = {};
  onAnswer = () => {};
  await pool.query('TRUNCATE orders, placements, outbox, live_messages, status_events CASCADE');
  const ids = Array.from({ length: 1_200 }, (_, nth) => `order-${nth + 1}`);
  await seedOrders(pool, ids, { order: { sequence: 1 } });
});

function follow(name: string, serviceOrderId: string, after?: number): void {
  const news: (number | string)[] = (heard[name] = []);
  const leave = feed.follow(serviceOrderId, after, (read) => {
    news.push(`at ${read?.state.sequence}`, ...(read?.messages ?? []).map(({ sequence }) => sequence));
    if (read?.ended === true) news.push('end');
  });
  following.push(leave);
}

/** As the service moves an order, and tells it. */
async function move(id: string, sequence: number, by: pg.ClientBase | pg.Pool = pool): Promise<void> {
  await by.query(
    `WITH o AS (UPDATE orders SET sequence = $2 WHERE service_order_id = $1)
     INSERT INTO outbox (service_order_id, sequence, rank) VALUES ($1, $2, 20)`,
    [id, sequence],
  );
}

/** As the relay does once the topic has it. */
const publish = (id: string): Promise<unknown> =>
  pool.query(
    `WITH gone AS (DELETE FROM outbox WHERE service_order_id = $1 RETURNING *)
     INSERT INTO live_messages (service_order_id, sequence, rank, applied_at)
     SELECT service_order_id, sequence, rank, applied_at FROM gone`,
    [id],
  );
const isLook = (text: string): boolean => text.includes('changed.*');
/** Waits until two looks are over, of which the second began after this call. */
async function twoLooks(): Promise<void> {
  const looks = (): number => asked.filter(isLook).length;
  const before = looks();
  await until(() => looks() >= before + 2);
}
const heardIs = (name: string, ...news: (number | string)[]): Promise<unknown> =>
  until(() => JSON.stringify(heard[name]) === JSON.stringify(news));

it('an idle feed sends Postgres only its regular query for changes', async () => {
  for (let i = 1; i <= 1_000; i++) follow(`${i}`, `order-${i}`);
  await until(() => Object.values(heard).every((news) => news.length === 1));
  const answeredAt: number[] = [];
  onAnswer = () => void answeredAt.push(performance.now());
  asked = [];
  await until(() => answeredAt.length === 4);
  expect(asked.every(isLook)).toBe(true);
  // Six a second, or fewer on a slow machine.
  expect((answeredAt[3] ?? 0) - (answeredAt[0] ?? 0)).toBeGreaterThan(400);
});

it('one query of the feed reads all followed orders that have changed, and no other orders', async () => {
  for (let i = 1; i <= 50; i++) follow(`${i}`, `order-${i}`, 1);
  await until(() => Object.values(heard).every((news) => news.length === 1));
  asked = [];
  await other.query('BEGIN');
  for (let i = 41; i <= 90; i++) await move(`order-${i}`, 2, other);
  await other.query('COMMIT');
  await until(() => Object.values(heard).filter((news) => news.length > 1).length === 10);
  // The topic has it: known already.
  await publish('order-41');
  await twoLooks();
  expect(heard['41']).toEqual(['at 1', 'at 2', 2]);
  expect(heard['40']).toEqual(['at 1']);
  expect(asked.filter((text) => !isLook(text)).length).toBe(1);
});

it('a follower gets a message that is published between two queries for changes', async () => {
  follow('one', 'order-1', 1);
  await heardIs('one', 'at 1');
  onAnswer = async (text) => {
    if (!isLook(text)) return;
    onAnswer = () => {};
    await move('order-1', 2);
    await publish('order-1');
  };
  await heardIs('one', 'at 1', 'at 2', 2);
});

it('a follower gets a message whose commit took longer than the commits of later messages', async () => {
  follow('slow', 'order-1', 1);
  follow('quick', 'order-2', 1);
  await until(() => Object.values(heard).every((news) => news.length === 1));
  await other.query('BEGIN');
  await move('order-1', 2, other);
  await move('order-2', 2);
  await heardIs('quick', 'at 1', 'at 2', 2);
  await twoLooks();
  await other.query('COMMIT');
  let reads = 0;
  onAnswer = (text) => {
    if (isLook(text) && heard['slow']?.includes('at 2') !== true) reads += 1;
  };
  await heardIs('slow', 'at 1', 'at 2', 2);
  // The first read may have begun before the commit. A wide read would find the message too, but seconds later.
  expect(reads).toBeLessThanOrEqual(2);
});

it('a follower who joins during a query for changes misses no message', async () => {
  follow('first', 'order-1', 1);
  await heardIs('first', 'at 1');
  // Committed after the look, which does not know it, and before the read of who joins.
  onAnswer = async (text) => {
    if (!isLook(text)) return;
    onAnswer = async () => {
      onAnswer = () => {};
      await move('order-1', 3);
    };
    await move('order-1', 2);
    follow('second', 'order-1');
    follow('third', 'order-1', 0);
  };
  feed.wake();
  await until(() => Object.values(heard).every((news) => news.includes(3) || news[0] === 'at 3'));
  expect(heard['first']?.filter(Number)).toEqual([2, 3]);
  expect(heard['third']?.filter(Number)).toEqual([2, 3]);
  expect(heard['second']?.[0]).toMatch(/^at [23]$/);
});

it("a follower who joins while another resumes the same order gets the time of the order's last status", async () => {
  await move('order-1', 2);
  const applied = new Promise((resolve) => {
    following.push(feed.follow('order-1', undefined, (read) => resolve(read?.state.appliedAt)));
  });
  follow('resumed', 'order-1', 2);
  expect(await applied).toEqual(expect.any(String));
});

it('a follower of an order that is not known yet gets all its messages', async () => {
  follow('early', 'order-of-tomorrow');
  await heardIs('early', 'at undefined');
  await seedOrders(pool, ['order-of-tomorrow'], { order: { sequence: 1 } });
  await move('order-of-tomorrow', 1);
  await heardIs('early', 'at undefined', 'at 1', 1);
});

it('an order that ends without a message ends the streams of its followers', async () => {
  follow('quiet', 'order-7', 1);
  await heardIs('quiet', 'at 1');
  await pool.query(`UPDATE orders SET ended_at = now() WHERE service_order_id = 'order-7'`);
  await heardIs('quiet', 'at 1', 'at 1', 'end');
});

it('after an hour without Postgres the feed reads every followed order again', async () => {
  follow('patient', 'order-1', 1);
  await heardIs('patient', 'at 1');
  // What was committed then is older than any look goes back.
  await pool.query(
    `WITH o AS (UPDATE orders SET sequence = 2 WHERE service_order_id = 'order-1')
     INSERT INTO live_messages (service_order_id, sequence, rank, applied_at, published_at)
     VALUES ('order-1', 2, 20, now() - interval '1 h', now() - interval '1 h')`,
  );
  await twoLooks();
  expect(heard['patient']).toEqual(['at 1']);
  const now = performance.now.bind(performance);
  performance.now = () => now() + 3_600_000;
  try {
    await heardIs('patient', 'at 1', 'at 2', 2);
  } finally {
    performance.now = now;
  }
});

it('a query for changes reads only new rows, even of tables without statistics', async () => {
  await pool.query(
    `INSERT INTO live_messages (service_order_id, sequence, rank, applied_at, published_at)
     SELECT 'order-' || i, 1, 10, now() - i * interval '1 min', now() - i * interval '1 min'
     FROM generate_series(3, 30000) AS i`,
  );
  const { reads, whole } = await readPlans(pool, async (recording) => {
    const changed = changedOrders(recording);
    await changed();
    await move('order-1', 2);
    expect([...((await changed()) ?? [])]).toEqual([['order-1', 2]]);
  });
  expect(whole).not.toContain('live_messages');
  expect(reads).toBeLessThan(20);
});
