import type { Fixtures } from './fixtures.ts';
import { until } from './until.ts';

/** Waits until statements of the database wait for a lock. */
export const untilLocked = ({ query }: Pick<Fixtures, 'query'>, count = 1): Promise<unknown> =>
  until(async () => {
    const waiting = await query(
      `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
    );
    return waiting.length >= count;
  });
