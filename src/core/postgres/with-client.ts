import pg, { type Pool, type PoolClient } from 'pg';

// guard: stale-statement
// guard: no-writes
/**
 * SQLSTATEs of errors that are known to be about the statement: its values (21, 22, 23), a collision (40), a limit
 * (54), a lock (55), a time-out (57014). Any other may be about the connection or its server: read-only (25006), full
 * (53), going down (57P01), a prepared statement that a migration made stale (0A000).
 */
const ABOUT_THE_STATEMENT = /^(?:21|22|23|40|54|55|57014)/;

/**
 * Lends a connection of the pool to `work`, and keeps it only if it is surely sound afterwards: one that leads to a
 * server which can be of no use would be lent for ever. `pool.query` closes its connection after every error.
 */
export async function withClient<Result>(pool: Pool, work: (client: PoolClient) => Promise<Result>): Promise<Result> {
  const client = await pool.connect();
  let broken: Error | undefined;
  // A connection that dies between two queries emits this error. Without a listener it would end the process.
  const onError = (error: Error): void => {
    broken = error;
  };
  client.on('error', onError);
  try {
    return await work(client);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || !ABOUT_THE_STATEMENT.test(error.code ?? '')) broken ??= error as Error;
    throw error;
  } finally {
    client.off('error', onError);
    // guard: unknown-state
    client.release(broken);
  }
}
