import pg, { type Pool } from 'pg';

/** Number of batch writers. */
export const BATCH_WRITERS = 2;
/** Connections of the batch writers and of the lock-wait queue, within the pool's size. */
export const WRITER_CONNECTIONS = BATCH_WRITERS + 1;
/** Seconds without traffic until either side probes the connection. */
const QUIET_S = 5;

/** SQL that is true if a connection's settings reached Postgres. A pooler may drop them. */
export const SETTINGS_ARRIVED = `current_setting('synchronous_commit') = 'on' AND current_setting('lock_timeout') <> '0'`;

/**
 * Opens two pools of at most `poolSize` connections in all. Each connection requests its own settings, because settings
 * of a role or database could weaken the promise that an answered webhook is on disk.
 */
export function openDatabase(
  url: string,
  poolSize: number,
  onError: (error: Error) => void,
): { pool: Pool; flushPool: Pool } {
  // `options` in the URL would replace ours, so both are joined below.
  const parsed = new URL(url);
  const { searchParams } = parsed;
  const theirs = searchParams.get('options') ?? '';
  searchParams.delete('options');
  const open = (
    max: number,
    about: { connectMs: number; statementMs: number; lockMs: number; settings: string },
  ): Pool => {
    const { connectMs, statementMs, lockMs, settings } = about;
    const pool = new pg.Pool({
      connectionString: parsed.href,
      max,
      connectionTimeoutMillis: connectMs,
      // The time-out of the server cannot fire while the server hangs.
      query_timeout: statementMs + 1_000,
      // The batch writers' connections are checked more often than this, so they stay open.
      idleTimeoutMillis: 10_000,
      // A host that is lost sends nothing, and a webhook must not be the first to notice a failover. After the delay
      // the operating system probes every second, ten times.
      keepAlive: true,
      keepAliveInitialDelayMillis: QUIET_S * 1_000,
      application_name: 'expediter',
      // Trimmed, because a pooler may read an empty word at either end as a setting.
      options: (
        `${theirs} -c synchronous_commit=on -c statement_timeout=${statementMs} -c lock_timeout=${lockMs} ` +
        // A plan made while a table was empty (as the outbox mostly is) would scan the whole table after it has filled.
        // With such scans off, plans look so costly that Postgres 15 to 17 would compile each one, so jit is off too.
        `-c idle_in_transaction_session_timeout=10000 -c enable_seqscan=off -c jit=off ` +
        // Postgres probes the connection too, so that the locks of a dead process are released in seconds.
        `-c tcp_keepalives_idle=${QUIET_S} -c tcp_keepalives_interval=1 -c tcp_keepalives_count=10 ` +
        `-c tcp_user_timeout=${(QUIET_S + 10) * 1_000} ${settings}`
      ).trim(),
    });
    // An idle connection that dies emits this error. Without a listener the error would end the process.
    pool.on('error', onError);
    // While a connection is handed over, neither the pool nor the borrower listens for its errors, and an error would
    // end the process. This listener ignores the error, and the borrower's next query fails.
    pool.on('connect', (client) => client.on('error', () => {}));
    return pool;
  };
  return {
    pool: open(poolSize - WRITER_CONNECTIONS, {
      connectMs: 3_000,
      statementMs: 8_000,
      lockMs: 4_000,
      settings: '',
    }),
    flushPool: open(WRITER_CONNECTIONS, {
      connectMs: 1_000,
      statementMs: 4_000,
      // All webhooks of a batch wait for this lock, and the sender of a webhook waits only 1.5 s.
      // guard: brief-lock-wait
      lockMs: 150,
      // Without this, a statement with arrays of one element would be planned again at every call.
      settings: '-c plan_cache_mode=force_generic_plan',
    }),
  };
}
