import pg from 'pg';
import { expect, it } from 'vitest';
import { retryWrite } from '../../../src/core/postgres/transactions.ts';

it.each([
  ['is not repeated if Postgres refuses its values', '22021', 1],
  ['is repeated while Postgres shuts down', '57P01', 2],
])('a write %s', async (_what, code, times) => {
  let count = 0;
  const write = (): Promise<string> => {
    count += 1;
    return count === 1
      ? Promise.reject(Object.assign(new pg.DatabaseError('no', 2, 'error'), { code }))
      : Promise.resolve('done');
  };
  await retryWrite(write).catch(() => {});
  expect(count).toBe(times);
});
