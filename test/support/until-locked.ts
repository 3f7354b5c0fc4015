import { until } from '../../world/processes/until.ts';

type Rows = { length: number };
/** A pool, or a service's database. */
type Database = { query(sql: string): Promise<Rows | { rows: Rows }> };

/** Waits until statements of the database wait for a lock. */
export const untilLocked = (database: Database, count = 1): Promise<unknown> =>
  until(async () => {
    const found = await database.query(
      `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
    );
    return ('rows' in found ? found.rows : found).length >= count;
  });
