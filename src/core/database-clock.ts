import type { Pool } from 'pg';

/** @throws when Postgres has not told the time yet */
export type Now = () => Date;

export type DatabaseClock = {
  now: Now;
  /** Asks Postgres for the time; to be repeated, since clocks drift. @throws while Postgres cannot be reached */
  follow(): Promise<void>;
};

/** An answer that took longer says too little about when it was given. */
const ANSWER_WITHIN_MS = 1_000;

/**
 * The time by Postgres's clock, which all processes share. A machine whose own clock is off would otherwise drop every
 * signed webhook as too old, and sign orders that every POS refuses. Between two answers the monotonic clock counts
 * on, so a step of the machine's clock moves nothing.
 */
export function databaseClock(pool: Pool): DatabaseClock {
  let timeOrigin: number | undefined;
  return {
    now() {
      if (timeOrigin === undefined) throw new Error('Postgres has not told the time yet');
      return new Date(timeOrigin + performance.now());
    },
    async follow() {
      const asked = performance.now();
      const { rows } = await pool.query<{ milliseconds: number }>({
        name: 'tell-time',
        text: 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS milliseconds',
      });
      const answered = performance.now();
      const row = rows[0];
      if (row === undefined || (timeOrigin !== undefined && answered - asked > ANSWER_WITHIN_MS)) return;
      timeOrigin = row.milliseconds - (asked + answered) / 2;
    },
  };
}
