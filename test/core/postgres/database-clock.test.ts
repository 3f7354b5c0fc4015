import os from 'node:os';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { databaseClock, TimeUnknown } from '../../../src/core/postgres/database-clock.ts';
import { createEmptyDatabase } from '../../../world/postgres/create-database.ts';

const LATE_MS = 800;
const HOUR_MS = 3_600_000;

let pool: pg.Pool;
/** How late an answer comes, and by how much Postgres's clock was set since. */
let lateMs: number;
let setByMs: number;
/** How long this process has run. Its clocks stand still but for what an answer takes. */
let ranMs: number;
/** By how much the machine's own clock was set, and for how long the machine was suspended. */
let ownSetByMs: number;
let suspendedMs: number;
const BEGAN = Date.UTC(2030, 0, 1);

beforeAll(async () => {
  pool = new pg.Pool({ connectionString: await createEmptyDatabase(), max: 1 });
  await pool.query('SELECT 1');
});
beforeEach(() => {
  [lateMs, setByMs, ranMs, ownSetByMs, suspendedMs] = [0, 0, 0, 0, 0];
  vi.spyOn(performance, 'now').mockImplementation(() => ranMs);
  vi.spyOn(Date, 'now').mockImplementation(() => BEGAN + ranMs + ownSetByMs);
  vi.spyOn(os, 'uptime').mockImplementation(() => (ranMs + suspendedMs) / 1_000);
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => pool?.end());

const telling = {
  async query(config: pg.QueryConfig) {
    const { rows } = await pool.query<{ milliseconds: number }>(config);
    const milliseconds = BEGAN + ranMs + setByMs;
    ranMs += lateMs;
    return { rows: rows.map(() => ({ milliseconds })) };
  },
} as pg.Pool;

/** Follows answers that are so late, one after the other. @returns how far off the clock is then, in ms */
async function offAfter(...answers: { lateMs: number; setByMs?: number }[]): Promise<number> {
  const clock = databaseClock(telling);
  for (const answer of answers) {
    ({ lateMs, setByMs = 0 } = answer);
    await clock.follow();
  }
  return clock.now().getTime() - (BEGAN + ranMs + setByMs);
}

it('after one late answer the clock is off by half of the delay', async () => {
  expect(await offAfter({ lateMs: LATE_MS })).toBe(-LATE_MS / 2);
});

it('a quick answer corrects the clock', async () => {
  expect(await offAfter({ lateMs: LATE_MS }, { lateMs: 0 })).toBe(0);
});

it('a late answer does not make the clock worse', async () => {
  expect(await offAfter({ lateMs: 0 }, { lateMs: LATE_MS })).toBe(0);
});

it("the clock follows a change of Postgres's clock at once, however late the answer comes", async () => {
  expect(await offAfter({ lateMs: 0 }, { lateMs: LATE_MS, setByMs: HOUR_MS })).toBe(-LATE_MS / 2);
});

it.each([
  ['set to another time', 0],
  ['suspended', HOUR_MS],
])('after the machine was %s, the clock is right before Postgres is asked again', async (_what, byMs) => {
  const clock = databaseClock(telling);
  await clock.follow();
  [ownSetByMs, suspendedMs] = [HOUR_MS, byMs];
  expect(clock.now().getTime()).toBe(BEGAN + byMs);
  setByMs = byMs;
  await clock.follow();
  expect(clock.now().getTime()).toBe(BEGAN + byMs);
});

it('the clock has the time of Postgres', async () => {
  vi.restoreAllMocks();
  const clock = databaseClock(pool);
  await clock.follow();
  // It runs on this machine.
  expect(Math.abs(clock.now().getTime() - Date.now())).toBeLessThan(60_000);
});

it('the time is unknown before the first answer of Postgres', () => {
  expect(() => databaseClock(telling).now()).toThrow(TimeUnknown);
});
