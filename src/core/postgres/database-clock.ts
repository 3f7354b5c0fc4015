import os from 'node:os';
import type { Pool } from 'pg';

/** Shorter suspensions are ignored. The time since boot is accurate only to some 10 ms. */
const SHORTEST_MS = 1_000;

/** How far the machine's clock is ahead of the monotonic clock. A suspension or setting the clock changes this. */
const clockAhead = (): number => Date.now() - performance.now();
/** How far the time since boot is ahead of the monotonic clock. Only suspensions change this. */
const bootAhead = (): number => os.uptime() * 1_000 - performance.now();

/**
 * Starts to watch for suspensions of the machine, during which its monotonic clock stops.
 * @returns a function that returns for how many milliseconds the machine was suspended since then
 */
export function watchSuspension(): () => number {
  const before = { clock: clockAhead(), boot: bootAhead() };
  return () => {
    // The cheap check comes first.
    if (clockAhead() - before.clock < SHORTEST_MS) return 0;
    const milliseconds = bootAhead() - before.boot;
    return milliseconds < SHORTEST_MS ? 0 : milliseconds;
  };
}

/** The time is not known, because Postgres has not answered since this process started. */
export class TimeUnknown extends Error {
  override readonly name = 'TimeUnknown';
  constructor() {
    super('the time is not known yet, because Postgres has not answered since this process started');
  }
}

/** Returns the time by Postgres's clock. @throws TimeUnknown */
export type Now = () => Date;

export type DatabaseClock = {
  now: Now;
  /** Reads the time from Postgres. Call it periodically: clocks drift. @throws while Postgres cannot be reached */
  follow(): Promise<void>;
};

/** Maximum drift between two clocks: quartz is accurate to 100 parts in a million. */
const DRIFT = 1e-4;

/**
 * The time by Postgres's clock, which all processes share. A machine with a wrong clock would otherwise drop every
 * signed webhook as too old, and sign orders that every POS refuses. Between two reads, the time advances by the
 * monotonic clock plus suspensions, so setting the machine's clock changes nothing.
 */
export function databaseClock(pool: Pool): DatabaseClock {
  let last: { timeOrigin: number; withinMs: number; at: number; suspendedMs: () => number } | undefined;
  return {
    now() {
      if (last === undefined) throw new TimeUnknown();
      return new Date(last.timeOrigin + performance.now() + last.suspendedMs());
    },
    async follow() {
      const suspendedMs = watchSuspension();
      const sentAt = performance.now();
      const { rows } = await pool.query<{ milliseconds: number }>({
        name: 'read-clock',
        text: 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS milliseconds',
      });
      const at = performance.now();
      if (rows[0] === undefined) return;
      const timeOrigin = rows[0].milliseconds - (sentAt + at) / 2;
      // Postgres read its clock between `sentAt` and `at`. If this answer and the last are compatible, the more exact
      // one is used. If not, Postgres's clock was set, and this answer is used.
      const withinMs = (at - sentAt) / 2;
      if (last !== undefined) {
        const knownWithinMs = last.withinMs + (at - last.at) * DRIFT;
        const mayBothBeRight = Math.abs(timeOrigin - last.timeOrigin) <= withinMs + knownWithinMs;
        // guard: late-answer
        // guard: set-clock
        if (mayBothBeRight && knownWithinMs < withinMs) return;
      }
      last = { timeOrigin, withinMs, at, suspendedMs };
    },
  };
}
