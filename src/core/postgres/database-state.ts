import type { Pool } from 'pg';
import { withClient } from './with-client.ts';

/** `read_only`: it answers, and takes no writes, as a standby. `unknown`: nobody has looked yet. */
export type DatabaseState = 'up' | 'read_only' | 'down' | 'unknown';

/** Looks at Postgres by one of the pool's connections. One whose server takes no writes is not lent again. */
export async function databaseState(pool: Pool): Promise<DatabaseState> {
  let state: DatabaseState = 'down';
  const look = withClient(pool, async (client) => {
    const { rows } = await client.query<{ read_only: boolean }>({
      name: 'is-read-only',
      text: `SELECT current_setting('transaction_read_only')::boolean AS read_only`,
    });
    state = rows[0]?.read_only === true ? 'read_only' : 'up';
    if (state === 'read_only') throw new Error('costs the connection');
  });
  await look.catch(() => {});
  return state;
}
