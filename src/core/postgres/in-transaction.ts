import type { Pool, PoolClient } from 'pg';
import { withClient } from './with-client.ts';

/** Runs `work` in a transaction. Commits, or rolls back and rethrows. */
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
        // Not an error from Postgres, so the connection is not lent again: it may still be in the transaction.
        throw new Error('could not be rolled back', { cause: error });
      });
      throw error;
    }
  });
}
