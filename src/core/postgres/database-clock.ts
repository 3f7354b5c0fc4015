import type { Pool } from 'pg';

/** @throws when Postgres has not told the time yet */
export type Now = () => Date;

export type DatabaseClock = {
  now: Now;
  /** Asks Postgres for the time; to be repeated, since clocks drift. @throws while Postgres cannot be reached */
  follow(): Promise<void>;
};

/** What two clocks may drift apart: quartz is kept within 100 parts in a million. */
const DRIFT = 1e-4;

/**
 * The time by Postgres's clock, which all processes share. A machine whose own clock is off would otherwise drop every
 * signed webhook as too old, and sign orders that every POS refuses. Between two answers the monotonic clock counts
 * on, so a step of the machine's clock moves nothing.
 */
export function databaseClock(pool: Pool): DatabaseClock {
  let told: { timeOrigin: number; withinMs: number; at: number } | undefined;
  return {
    now() {
      if (told === undefined) throw new Error('Postgres has not told the time yet');
      return new Date(told.timeOrigin + performance.now());
    },
    async follow() {
      const asked = performance.now();
      const { rows } = await pool.query<{ milliseconds: number }>({
        name: 'tell-time',
        text: 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS milliseconds',
      });
      const at = performance.now();
      if (rows[0] === undefined) return;
      const timeOrigin = rows[0].milliseconds - (asked + at) / 2;
      // It was told at some time between. Where two answers may both be right the closer one is believed, and where they
      // cannot, a clock was set.
      const withinMs = (at - asked) / 2;
      if (told !== undefined) {
        const knownWithinMs = told.withinMs + (at - told.at) * DRIFT;
        const mayBothBeRight = Math.abs(timeOrigin - told.timeOrigin) <= withinMs + knownWithinMs;
        if (mayBothBeRight && knownWithinMs < withinMs) return;
      }
      told = { timeOrigin, withinMs, at };
    },
  };
}
