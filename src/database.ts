import pg, { type Pool } from 'pg';

/** Of them are the flushers', which keep one connection each. */
export const FLUSHERS = 2;

/**
 * Two pools of at most `poolSize` connections in all. Settings travel with the connection, so that a role's or a
 * database's own cannot weaken the promise that an answered webhook is on disk.
 */
export function openDatabase(
  url: string,
  poolSize: number,
  onError: (error: Error) => void,
): { pool: Pool; flushPool: Pool } {
  // Left in the URL, its own `options` would replace ours.
  const parsed = new URL(url);
  const { searchParams } = parsed;
  const theirs = searchParams.get('options') ?? '';
  searchParams.delete('options');
  const open = (
    max: number,
    about: { connectMs: number; statementMs: number; idleMs: number; settings: string },
  ): Pool => {
    const { connectMs, statementMs, idleMs, settings } = about;
    const pool = new pg.Pool({
      connectionString: parsed.href,
      max,
      connectionTimeoutMillis: connectMs,
      // The server's own time-out cannot fire while the server hangs.
      query_timeout: statementMs + 1_000,
      idleTimeoutMillis: idleMs,
      keepAlive: true,
      // Google's firewalls forget a connection that says nothing for ten minutes, and tell nobody.
      keepAliveInitialDelayMillis: 60_000,
      application_name: 'expediter',
      options:
        `${theirs} -c synchronous_commit=on -c statement_timeout=${statementMs} -c lock_timeout=${statementMs / 2} ` +
        // A plan made while a table was empty (the outbox mostly is) would read it from end to end once it is full.
        `-c idle_in_transaction_session_timeout=10000 -c enable_seqscan=off ${settings}`,
    });
    // An idle connection that dies says so here; without a listener that would end the process.
    pool.on('error', onError);
    // While it is handed over it has no listener of the pool's any more and none of the borrower's yet. Ended in that
    // moment, it would end the process; so the borrower's next query says that it is gone.
    pool.on('connect', (client) => client.on('error', () => {}));
    return pool;
  };
  return {
    pool: open(poolSize - FLUSHERS, { connectMs: 3_000, statementMs: 8_000, idleMs: 10_000, settings: '' }),
    flushPool: open(FLUSHERS, {
      connectMs: 1_000,
      statementMs: 4_000,
      // For good: in a quiet hour each webhook would wait for a connection and for the statement's plan.
      idleMs: 0,
      // One-element arrays would be planned again at every call.
      settings: '-c plan_cache_mode=force_generic_plan',
    }),
  };
}
