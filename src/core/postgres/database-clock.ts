import type { Pool } from 'pg';
import { watchSuspension } from './watch-suspension.ts';

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
