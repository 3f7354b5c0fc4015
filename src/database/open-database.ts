import { Socket } from 'node:net';
import pg, { type ClientBase, type Pool, type PoolClient } from 'pg';
import { setInTransactions } from '../core/postgres/transactions.ts';
import { CONNECT_MS, SETTINGS, WrongSchema, connectionTo, requireSettings } from './check-schema.ts';

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
 * Who waits for a connection gives up after a few seconds. The connection itself has `CONNECT_MS`, see `giveUpAfter`.
 * @param onError gets the errors of idle connections, and a WrongSchema for each connection that was refused
 * @param patienceMs how long somebody waits for a connection of `pool`. Nobody waits longer than `CONNECT_MS`
 */
export function openDatabase(
  url: string,
  poolSize: number,
  onError: (error: Error) => void,
  patienceMs = 3_000,
): { pool: Pool; flushPool: Pool } {
  const open = (
    max: number,
    about: { waitMs: number; queryMs: number; settings: typeof SETTINGS; inTransactions?: typeof WRITER_SETTINGS },
  ): Pool => {
    const { waitMs, queryMs, settings, inTransactions } = about;
    const check = async (client: ClientBase): Promise<void> => {
      const isOwn = await requireSettings(client, { lock: settings.lock_timeout, withinMs: CONNECT_MS });
      if (!isOwn && inTransactions !== undefined) setInTransactions(client, inTransactions);
    };
    const pool = new pg.Pool({
      ...connectionTo(url, { ...settings, ...KEEPALIVES }),
      max,
      stream: () => socketThatAnswers(waitMs),
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
    giveUpAfter(waitMs, pool);
    return pool;
  };
  return {
    pool: open(poolSize - WRITER_CONNECTIONS, { waitMs: patienceMs, queryMs: 9_000, settings: SETTINGS }),
    flushPool: open(WRITER_CONNECTIONS, {
      waitMs: 1_000,
      queryMs: 5_000,
      settings: { ...SETTINGS, ...WRITER_SETTINGS },
      inTransactions: WRITER_SETTINGS,
    }),
  };
}

/** A socket that fails if the host does not answer in time, as a lost one does. A busy Postgres on it may take longer. */
function socketThatAnswers(withinMs: number): Socket {
  const socket = new Socket();
  const late = setTimeout(() => socket.destroy(new Error('Connection terminated: the host does not answer')), withinMs);
  socket.once('connect', () => clearTimeout(late));
  socket.once('close', () => clearTimeout(late));
  return socket;
}

/**
 * Makes `connect` fail after this time, but lets the connection be made, for the one who needs it next. A busy Postgres has
 * done the costly part of it by then. If it were thrown away, each new attempt would make Postgres busier: after a
 * restart under load, none came through for four minutes.
 */
function giveUpAfter(waitMs: number, pool: Pool): void {
  const connect = pool.connect.bind(pool) as () => Promise<PoolClient>;
  const connectWithin = async (): Promise<PoolClient> => {
    const asked = connect();
    let late: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_, reject) => {
      late = setTimeout(() => {
        // guard: kept-attempt
        asked.then((client) => client.release()).catch(() => {});
        reject(new Error('timeout exceeded when trying to connect'));
      }, waitMs);
    });
    return Promise.race([asked, tooLate]).finally(() => clearTimeout(late));
  };
  pool.connect = ((then?: (error: Error | undefined, client?: PoolClient, release?: PoolClient['release']) => void) => {
    const asked = connectWithin();
    // `pool.query` calls it so.
    if (then === undefined) return asked;
    return void asked.then((client) => then(undefined, client, client.release), then);
  }) as Pool['connect'];
}
