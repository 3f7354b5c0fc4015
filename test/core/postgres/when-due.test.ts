import type { Pool } from 'pg';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { whenDue } from '../../../src/core/postgres/when-due.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A pool that answers what is true, and counts its queries. */
function poolWith(isTrue: (sql: string) => boolean) {
  const pool = { asked: 0, query: vi.fn() };
  pool.query.mockImplementation(async ({ text }: { text: string }) => {
    pool.asked += 1;
    const due = [...text.matchAll(/coalesce\(\((.*)\), false\)/g)].map(([, sql = '']) => isTrue(sql));
    return { rows: [{ due }] };
  });
  return pool as unknown as Pool & { asked: number };
}

/** Waits for each, and collects those that are due. */
function waitFor(pool: Pool, ...kinds: string[]): string[] {
  const due: string[] = [];
  for (const kind of kinds) void whenDue(pool, kind).then(() => due.push(kind));
  return due;
}

it('one statement looks for all kinds of work, once a second', async () => {
  const pool = poolWith((sql) => sql === 'tickets');
  const due = waitFor(pool, 'tickets', 'pauses', 'pauses', 'notices');
  await vi.advanceTimersByTimeAsync(1_000);
  expect([due, pool.asked]).toEqual([['tickets'], 1]);
  await vi.advanceTimersByTimeAsync(3_000);
  expect([due, pool.asked]).toEqual([['tickets'], 4]);
});

it('nothing is asked while nobody waits', async () => {
  const pool = poolWith(() => true);
  const due = waitFor(pool, 'tickets');
  await vi.advanceTimersByTimeAsync(10_000);
  expect([due, pool.asked]).toEqual([['tickets'], 1]);
});

it('work that no look sees begins after a minute', async () => {
  const due = waitFor(
    poolWith(() => false),
    'tickets',
  );
  await vi.advanceTimersByTimeAsync(59_000);
  expect(due).toEqual([]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(due).toEqual(['tickets']);
});

it('work begins when Postgres does not answer, so that it reports the outage', async () => {
  const pool = { query: () => Promise.reject(new Error('no database')) } as unknown as Pool;
  const due = waitFor(pool, 'tickets', 'pauses');
  await vi.advanceTimersByTimeAsync(1_000);
  expect(due).toEqual(['tickets', 'pauses']);
});

it('after a slow look the next one is later', async () => {
  const pool = { asked: 0 };
  const query = async (): Promise<unknown> => {
    pool.asked += 1;
    await new Promise((answer) => setTimeout(answer, 200));
    return { rows: [{ due: [false] }] };
  };
  waitFor({ query } as unknown as Pool, 'tickets');
  await vi.advanceTimersByTimeAsync(1_000 + 200 + 3_900);
  expect(pool.asked).toBe(1);
  await vi.advanceTimersByTimeAsync(200);
  expect(pool.asked).toBe(2);
});
