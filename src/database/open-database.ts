import pg, { type ClientBase, type Pool } from 'pg';
import { setInTransactions } from '../core/postgres/transactions.ts';
import { SETTINGS, WrongSchema, connectionTo, requireSettings } from './check-schema.ts';

export const BATCH_WRITERS = 2;
/** Connections of the batch writers and of the lock-wait queue, within the pool's size. */
export const WRITER_CONNECTIONS = BATCH_WRITERS + 1;
/** Seconds without traffic until either side probes the connection. */
const QUIET_S = 5;
/** Postgres probes the connection too, so that the locks of a dead process are released in seconds. */
const KEEPALIVES = {
  tcp_keepalives_idle: `${QUIET_S}`,
  tcp_keepalives_interval: '1',
  tcp_keepalives_count: '10',
  tcp_user_timeout: `${(QUIET_S + 10) * 1_000}`,
};
const WRITER_SETTINGS = {
  synchronous_commit: 'on',
  statement_timeout: '4s',
  // All webhooks of a batch wait for this lock, and the sender of a webhook waits only 1.5 s.
  // guard: brief-lock-wait
  lock_timeout: '150ms',
  // Without this, a statement with arrays of one element would be planned again at every call, which takes 1 ms.
  plan_cache_mode: 'force_generic_plan',
};

/**
 * Opens two pools of at most `poolSize` connections in all. Each new connection is checked: see `requireSettings`.
 * @param onError gets the errors of idle connections, and a WrongSchema for each connection that was refused
 */
export function openDatabase(
  url: string,
  poolSize: number,
  onError: (error: Error) => void,
): { pool: Pool; flushPool: Pool } {
  const open = (
    max: number,
    about: { connectMs: number; queryMs: number; settings: typeof SETTINGS; inTransactions?: typeof WRITER_SETTINGS },
  ): Pool => {
    const { connectMs, queryMs, settings, inTransactions } = about;
    const check = async (client: ClientBase): Promise<void> => {
      const isOwn = await requireSettings(client, { lock: settings.lock_timeout, withinMs: connectMs });
      if (!isOwn && inTransactions !== undefined) setInTransactions(client, inTransactions);
    };
    const pool = new pg.Pool({
      ...connectionTo(url, { ...settings, ...KEEPALIVES }),
      max,
      connectionTimeoutMillis: connectMs,
      // The time-out of the server cannot fire while the server hangs.
      query_timeout: queryMs,
      // The batch writers' connections are checked more often than this, so they stay open.
      idleTimeoutMillis: 10_000,
      // A host that is lost sends nothing, and a webhook must not be the first to notice a failover. After the delay
      // the operating system probes every second, ten times.
      keepAlive: true,
      keepAliveInitialDelayMillis: QUIET_S * 1_000,
      application_name: 'expediter',
      // The pool waits for this promise, although its type does not say so.
      onConnect: (client): unknown =>
        check(client).catch((error: Error) => {
          if (error instanceof WrongSchema) onError(error);
          throw error;
        }),
    });
    // An idle connection that dies emits this error. Without a listener the error would end the process.
    pool.on('error', onError);
    // While a connection is handed over, neither the pool nor the borrower listens for its errors, and an error would
    // end the process. This listener ignores the error, and the borrower's next query fails.
    pool.on('connect', (client) => client.on('error', () => {}));
    return pool;
  };
  return {
    pool: open(poolSize - WRITER_CONNECTIONS, { connectMs: 3_000, queryMs: 9_000, settings: SETTINGS }),
    flushPool: open(WRITER_CONNECTIONS, {
      connectMs: 1_000,
      queryMs: 5_000,
      settings: { ...SETTINGS, ...WRITER_SETTINGS },
      inTransactions: WRITER_SETTINGS,
    }),
  };
}
