import pg, { type Pool, type PoolClient } from 'pg';

/**
 * How Postgres refuses a prepared statement that would give other columns, or of other types, than when it was prepared,
 * as after a migration. It goes on refusing it on that connection.
 */
const STALE_PLAN = '0A000';

/** Lends a connection of the pool to `work`, and lets go of it for good when nobody can know what state it is in. */
export async function withClient<Result>(pool: Pool, work: (client: PoolClient) => Promise<Result>): Promise<Result> {
  const client = await pool.connect();
  let broken: Error | undefined;
  // A connection that dies between two queries says so here; without a listener that would end the process.
  const onError = (error: Error): void => {
    broken = error;
  };
  client.on('error', onError);
  try {
    return await work(client);
  } catch (error) {
    // After most errors that Postgres itself sent, the connection is sound; after any other, nobody knows.
    if (!(error instanceof pg.DatabaseError) || error.code === STALE_PLAN) broken ??= error as Error;
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}
