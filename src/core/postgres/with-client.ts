import pg, { type Pool, type PoolClient } from 'pg';

/**
 * The error of a prepared statement whose columns or types have changed, as after a migration. It recurs on that
 * connection.
 */
const STALE_PLAN = '0A000';

/** Lends a connection of the pool to `work`, and closes it if its state is unknown afterwards. */
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
    // After most errors from Postgres itself the connection is sound. After any other, its state is unknown.
    if (!(error instanceof pg.DatabaseError) || error.code === STALE_PLAN) broken ??= error as Error;
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}
