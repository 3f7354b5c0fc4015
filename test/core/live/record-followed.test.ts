import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { liveProcesses } from '../../../src/core/domain/live-processes.ts';
import { recordFollowed } from '../../../src/core/live/record-followed.ts';
import { showOrder } from '../../../src/core/orders/show-order.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { asService } from '../../../world/system/as-service.ts';
import { createDatabase } from '../../../world/postgres/create-database.ts';
import { beside } from '../../support/while-locked.ts';

const ORDERS = ['order-1', 'order-2', 'order-3'];

let owner: pg.Pool;
let pool: pg.Pool;
let flushPool: pg.Pool;
beforeAll(async () => {
  const url = await createDatabase();
  owner = new pg.Pool({ connectionString: url, max: 1 });
  ({ pool, flushPool } = openDatabase(asService(url), 8, () => {}));
  await owner.query(
    `INSERT INTO placements (service_order_id, deadline_at) SELECT unnest($1::text[]), now() + interval '1 h'`,
    [ORDERS],
  );
});
beforeEach(() => owner.query('TRUNCATE followed_orders, following_processes'));
afterAll(() => Promise.all([owner?.end(), pool?.end(), flushPool?.end()]));

/** A process, with what is followed through it. */
function startProcess(through: Pick<pg.Pool, 'query'> = pool): { follows: string[]; write: () => Promise<void> } {
  const started: { follows: string[]; write: () => Promise<void> } = {
    follows: [],
    write: recordFollowed(through, () => new Set(started.follows)),
  };
  return started;
}

async function watched(): Promise<string[]> {
  const shown = await Promise.all(ORDERS.map((id) => showOrder(pool, id)));
  return shown.flatMap((order) => (order?.memberWatching === true ? [order.serviceOrderId] : []));
}

const pass = (seconds: number): Promise<unknown> =>
  owner.query(`UPDATE following_processes SET beat_at = beat_at - make_interval(secs => $1)`, [seconds]);
const rows = async (): Promise<number> => (await owner.query('SELECT FROM followed_orders')).rowCount ?? 0;

it('an order counts as followed while a member follows it through any process', async () => {
  const [one, other] = [startProcess(), startProcess()];
  one.follows = ['order-1', 'order-2'];
  other.follows = ['order-2', 'order-3'];
  await Promise.all([one.write(), other.write()]);
  expect(await watched()).toEqual(['order-1', 'order-2', 'order-3']);

  one.follows = ['order-1'];
  other.follows = [];
  await Promise.all([one.write(), other.write()]);
  expect(await watched()).toEqual(['order-1']);
  one.follows = [];
  await one.write();
  expect(await watched()).toEqual([]);
});

it('each process knows the number of running processes, even without followers', async () => {
  const [one, other] = [startProcess(), startProcess()];
  for (const each of [one, other, one]) await each.write();
  expect(liveProcesses.count).toBe(2);
  await pass(31);
  await one.write();
  expect(liveProcesses.count, 'the other is dead').toBe(1);
});

it('all changes since the last write go in one statement', async () => {
  const asked: unknown[][] = [];
  const counting = (async (...about: [string, unknown[]]) => {
    asked.push(about[1].slice(1));
    return pool.query(...about);
  }) as typeof pool.query;
  const one = startProcess({ query: counting });
  await one.write();
  one.follows = ['order-1', 'order-2'];
  await one.write();
  one.follows = ['order-2', 'order-3'];
  await one.write();
  await one.write();
  expect(asked).toEqual([
    [[], []],
    [['order-1', 'order-2'], []],
    [['order-3'], ['order-1']],
    [[], []],
  ]);
});

it('the followed orders of a killed process count for half a minute, then another process deletes them', async () => {
  const [killed, lives] = [startProcess(), startProcess()];
  killed.follows = ['order-1', 'order-2'];
  lives.follows = ['order-3'];
  await Promise.all([killed.write(), lives.write()]);
  await pass(29);
  expect(await watched()).toEqual(['order-1', 'order-2', 'order-3']);
  await pass(2);
  expect(await watched()).toEqual([]);
  await lives.write();
  expect(await watched()).toEqual(['order-3']);
  expect(await rows()).toBe(1);
});

it('a process does not wait for another that deletes rows of a dead process', async () => {
  const [killed, lives] = [startProcess(), startProcess()];
  killed.follows = ['order-1'];
  await killed.write();
  await pass(31);
  lives.follows = ['order-2'];
  await beside(pool, 'DELETE FROM following_processes', lives.write);
  expect(await watched()).toEqual(['order-2']);
});

it('a process that counted as dead, or whose rows a restore lost, writes all its orders again', async () => {
  const [late, lives] = [startProcess(), startProcess()];
  late.follows = ['order-1'];
  await late.write();
  await pass(31);
  lives.follows = ['order-2'];
  await lives.write();
  late.follows.push('order-3');
  await late.write();
  await late.write();
  expect(await watched()).toEqual(['order-1', 'order-2', 'order-3']);

  await owner.query('TRUNCATE followed_orders, following_processes');
  for (const process of [late, lives, late, lives]) await process.write();
  expect(await watched()).toEqual(['order-1', 'order-2', 'order-3']);
});

it('after a write with an unknown result, only the orders that are still followed keep their rows', async () => {
  let isCut = true;
  const one = startProcess({
    query: (async (...about: [string, unknown[]]) => {
      const answer = await pool.query(...about);
      if (isCut) throw new Error('the connection was cut');
      return answer;
    }) as typeof pool.query,
  });
  one.follows = ['order-1', 'order-2'];
  await expect(one.write()).rejects.toThrow('cut');
  isCut = false;
  one.follows = ['order-2'];
  await one.write();
  await pass(20);
  await one.write();
  await pass(20);
  expect(await watched()).toEqual(['order-2']);
});

it('ten thousand orders that are followed at once are written in one round', async () => {
  const one = startProcess();
  one.follows = Array.from({ length: 10_000 }, (_, nth) => `order-${nth}`);
  await one.write();
  expect(await rows()).toBe(10_000);
  expect(await watched()).toEqual(ORDERS);
});
