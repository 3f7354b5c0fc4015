import type { Pool, PoolClient } from 'pg';
import { withClient } from './with-client.ts';

/** Commits what `work` did, or rolls it back and throws what it threw. */
export async function inTransaction<Result>(
  pool: Pool,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  return withClient(pool, async (client) => {
    await client.query('BEGIN');
    try {
      const result = await work(client);
      await client.query('COMMIT');
      return result;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {
        // No error of Postgres's own: the connection may still be in the transaction, and must not be lent again.
        throw new Error('could not be rolled back', { cause: error });
      });
      throw error;
    }
  });
}
