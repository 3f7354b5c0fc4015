import os from 'node:os';
import type { Pool } from 'pg';

/** The shortest suspension that matters. The time since the machine booted is exact to some 10 ms. */
const SHORTEST_MS = 1_000;

/** How far the machine's clock is ahead of the monotonic one. A suspension moves it, and whoever sets the clock. */
const clockAhead = (): number => Date.now() - performance.now();
/** How far the time since the machine booted is ahead of it. Only a suspension moves that. */
const bootAhead = (): number => os.uptime() * 1_000 - performance.now();

/**
 * Begins to watch whether the machine is suspended, since its monotonic clock stands still meanwhile.
 * @returns the milliseconds for which it was
 */
export function watchSuspension(): () => number {
  const before = { clock: clockAhead(), boot: bootAhead() };
  return () => {
    // The first question is the cheap one.
    if (clockAhead() - before.clock < SHORTEST_MS) return 0;
    const milliseconds = bootAhead() - before.boot;
    return milliseconds < SHORTEST_MS ? 0 : milliseconds;
  };
}

/** Returns the time. @throws before Postgres has first answered */
export type Now = () => Date;

export type DatabaseClock = {
  now: Now;
  /** Asks Postgres for the time. To be repeated, since clocks drift. @throws while Postgres cannot be reached */
  follow(): Promise<void>;
};

/** The most that two clocks drift apart: quartz is accurate to 100 parts in a million. */
const DRIFT = 1e-4;

/**
 * The time by Postgres's clock, which all processes share. A machine whose own clock is off would drop every signed
 * webhook as too old, and sign orders that every POS refuses. Between two answers the monotonic clock counts on, and what
 * it misses while the machine is suspended, so setting the machine's clock changes nothing.
 */
export function databaseClock(pool: Pool): DatabaseClock {
  let last: { timeOrigin: number; withinMs: number; at: number; suspendedMs: () => number } | undefined;
  return {
    now() {
      if (last === undefined) throw new Error('Postgres has not told the time yet');
      return new Date(last.timeOrigin + performance.now() + last.suspendedMs());
    },
    async follow() {
      const suspendedMs = watchSuspension();
      const sentAt = performance.now();
      const { rows } = await pool.query<{ milliseconds: number }>({
        name: 'tell-time',
        text: 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS milliseconds',
      });
      const at = performance.now();
      if (rows[0] === undefined) return;
      const timeOrigin = rows[0].milliseconds - (sentAt + at) / 2;
      // Postgres read its clock at some moment in between. If two answers can both be right, the more exact one is
      // used; if not, a clock was set.
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
