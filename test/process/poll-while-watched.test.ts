import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { expect, it } from 'vitest';
import { orderFeed } from '../../src/core/live/order-feed.ts';
import { pollWhileWatched } from '../../src/core/postgres/loops.ts';
import { until } from '../../world/processes/until.ts';

it('after a slow or failed query polling pauses in proportion, and logs a repeated failure once', async () => {
  const began: number[] = [];
  const logged: string[] = [];
  const loop = pollWhileWatched({
    pollMs: 60_000,
    isWatched: () => true,
    async poll() {
      began.push(performance.now());
      await sleep(200);
      if (began.length <= 2) throw new Error('no database');
    },
    log: { error: (_, message) => void logged.push(message) },
    failing: 'cannot look',
  });
  await until(() => began.length === 1);
  loop.wake();
  await until(() => began.length === 2);
  const [first = 0, second = 0] = began;
  expect(second - first).toBeGreaterThan(200 + 350);

  await sleep(200 + 420);
  // Timers end in their order, also in a process that is late.
  const first350 = sleep(350).then(() => began.length);
  loop.wake();
  expect(await first350, 'it has rested').toBe(3);
  await loop.stop();
  expect(logged).toEqual(['cannot look']);
});

it('without watchers polling sleeps until it is woken', async () => {
  let looks = 0;
  const isWatched = (): boolean => {
    looks += 1;
    return false;
  };
  const loop = pollWhileWatched({ pollMs: 1, isWatched, poll: async () => {}, log: { error() {} }, failing: '' });
  await sleep(100);
  const asleep = looks;
  await sleep(100);
  expect(looks).toBe(asleep);
  loop.wake();
  await until(() => looks > asleep);
  await loop.stop();
});

it('polling sends no query while nobody follows an order', async () => {
  let asked = 0;
  let leave = (): void => {};
  const query = (): Promise<unknown> => {
    asked += 1;
    leave();
    return Promise.resolve({ rows: [] });
  };
  const feed = orderFeed({ pool: { query } as unknown as Pool, log: { error: () => {} } });
  feed.wake();
  await sleep(400);
  expect(asked).toBe(0);
  leave = feed.follow('order-1', undefined, () => {});
  await until(() => asked === 1);
  await sleep(400);
  expect(asked).toBe(1);
  await feed.stop();
});
