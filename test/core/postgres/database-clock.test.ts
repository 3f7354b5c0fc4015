import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { databaseClock } from '../../../src/core/postgres/database-clock.ts';
import { createEmptyDatabase } from '../../support/create-database.ts';

const LATE_MS = 800;
/** A busy machine answers a little late itself; a late answer that is believed is off by half of what it took. */
const LITTLE_MS = LATE_MS / 4;
const HOUR_MS = 3_600_000;

let pool: pg.Pool;
/** How late an answer comes, and by how much Postgres's clock was set since. */
let lateMs: number;
let setByMs: number;

beforeAll(async () => {
  pool = new pg.Pool({ connectionString: await createEmptyDatabase(), max: 1 });
  await pool.query('SELECT 1');
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => pool?.end());

const telling = {
  async query(config: pg.QueryConfig) {
    const { rows } = await pool.query<{ milliseconds: number }>(config);
    await sleep(lateMs);
    return { rows: rows.map(({ milliseconds }) => ({ milliseconds: milliseconds + setByMs })) };
  },
} as pg.Pool;

/** Follows answers that are so late, one after the other. @returns how far off the clock is then, in ms */
async function offAfter(...answers: { lateMs: number; setByMs?: number }[]): Promise<number> {
  const clock = databaseClock(telling);
  for (const answer of answers) {
    ({ lateMs, setByMs = 0 } = answer);
    await clock.follow();
  }
  return clock.now().getTime() - (Date.now() + setByMs);
}

it('a late answer alone is off by half of what it took', async () => {
  expect(await offAfter({ lateMs: LATE_MS })).toBeLessThan(-LITTLE_MS);
});

it('a quick answer mends it', async () => {
  expect(Math.abs(await offAfter({ lateMs: LATE_MS }, { lateMs: 0 }))).toBeLessThan(LITTLE_MS);
});

it('a late answer does not make it worse', async () => {
  expect(Math.abs(await offAfter({ lateMs: 0 }, { lateMs: LATE_MS }))).toBeLessThan(LITTLE_MS);
});

it('a clock that was set is followed at once, however late it answers', async () => {
  const off = await offAfter({ lateMs: 0 }, { lateMs: LATE_MS, setByMs: HOUR_MS });
  expect(Math.abs(off)).toBeLessThan(LATE_MS);
});

it.each([
  ['set', false, 0],
  ['suspended', true, HOUR_MS],
])('where the machine is %s it is right before Postgres is asked again', async (_what, suspended, byMs) => {
  const [wall, uptime] = [Date.now, os.uptime()];
  const clock = databaseClock(telling);
  [lateMs, setByMs] = [0, 0];
  await clock.follow();
  const before = clock.now().getTime();
  vi.spyOn(Date, 'now').mockImplementation(() => wall() + HOUR_MS);
  if (suspended) vi.spyOn(os, 'uptime').mockReturnValue(uptime + HOUR_MS / 1_000);
  expect(Math.abs(clock.now().getTime() - before - byMs)).toBeLessThan(LITTLE_MS);
  [lateMs, setByMs] = [0, byMs];
  await clock.follow();
  expect(Math.abs(clock.now().getTime() - before - byMs)).toBeLessThan(LITTLE_MS);
});

it('nobody knows the time before Postgres has told it', () => {
  expect(() => databaseClock(telling).now()).toThrow('Postgres has not told the time yet');
});
