import { setTimeout as sleep } from 'node:timers/promises';
import pg, { type ClientBase, type Pool, type PoolClient } from 'pg';

// guard: stale-statement
// guard: no-writes
const ABOUT_THE_STATEMENT = /^(?:21|22|23|40|54|55|57014)/;

/**
 * True for errors that are certainly about the statement: its values (SQLSTATE 21, 22, 23), a collision (40), a limit
 * (54), a lock (55), a time-out (57014). A statement about other rows may succeed. Other errors may be about the
 * connection or its server: read-only (25006), full (53), shutting down (57P01), a prepared statement that a migration
 * made stale (0A000).
 */
export function isAboutStatement(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && ABOUT_THE_STATEMENT.test(error.code ?? '');
}

/**
 * Lends a pool connection to `work`. Closes it after an error that may be about the connection or its server, because
 * otherwise the pool would lend it again. A client is lent as it is. `pool.query` closes its connection after every error.
 */
export async function withClient<Result>(
  pool: Pool | PoolClient,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  if ('release' in pool) return work(pool);
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
    if (!isAboutStatement(error)) broken ??= error as Error;
    throw error;
  } finally {
    client.off('error', onError);
    // guard: unknown-state
    client.release(broken);
  }
}

/** SQL that begins a transaction on a connection that cannot keep settings. */
const beginnings = new WeakMap<ClientBase, string>();

/** Sets these settings in each transaction of the connection, because its pooler would drop them. */
export function setInTransactions(client: ClientBase, settings: Record<string, string>): void {
  const all = Object.entries(settings).map(([name, value]) => `SET LOCAL ${name} = '${value}'`);
  beginnings.set(client, ['BEGIN', ...all].join('; '));
}

/**
 * Lends a connection for one statement that needs the settings of its pool. Behind a pooler, this takes a transaction,
 * which costs Postgres 0.06 ms.
 */
export async function withSettings<Result>(pool: Pool, work: (client: PoolClient) => Promise<Result>): Promise<Result> {
  return withClient(pool, (client) => (beginnings.has(client) ? within(client, work) : work(client)));
}

/** Runs `work` in a transaction. Commits, or rolls back and rethrows. With a client, `work` joins its transaction. */
export async function inTransaction<Result>(
  pool: Pool | PoolClient,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  return 'release' in pool ? work(pool) : withClient(pool, (client) => within(client, work));
}

async function within<Result>(client: PoolClient, work: (client: PoolClient) => Promise<Result>): Promise<Result> {
  await client.query(beginnings.get(client) ?? 'BEGIN');
  try {
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await rollBack(client, error);
    throw error;
  }
}

/** @throws an Error after which `withClient` closes the connection, because it may still be in the transaction */
export async function rollBack(client: PoolClient, cause?: unknown): Promise<void> {
  await client.query('ROLLBACK').catch((error: unknown) => {
    throw new Error('could not be rolled back', { cause: cause ?? error });
  });
}

/** Advisory locks of this service. Never change a number: processes of two releases must take the same lock. */
export const LOCK_PARTITIONS = 7_301;
export const LOCK_END_ORDERS = 7_303;
export const LOCK_DROP_PARTITIONS = 7_304;
export const LOCK_DELETE_UNMATCHED = 7_305;
export const LOCK_ERASE_MEMBERS = 7_306;
export const LOCK_DELETE_TRAFFIC = 7_307;
export const LOCK_SCORE_HOURS = 7_308;
export const LOCK_DELETE_REFUSED = 7_312;
export const LOCK_POLL = 7_313;
export const LOCK_DELETE_SESSIONS = 7_314;
export const LOCK_DELETE_GRANTS = 7_315;
export const LOCK_DELETE_AUDIT = 7_316;
export const LOCK_DELETE_LINKS = 7_318;
export const LOCK_KITCHENS = 7_319;
export const LOCK_SUSPECTS = 7_320;
export const LOCK_ATTENTION = 7_321;
export const LOCK_FIND_NOTICES = 7_322;
export const LOCK_DELETE_NOTICES = 7_323;
export const LOCK_MOVE_ORDERS = 7_324;
export const LOCK_ARCHIVE = 7_325;
/** Taken together with the id of a location that is about to be created. */
export const LOCK_CREATE_LOCATION = 7_317;
/** Taken together with the target of a location's settings. */
export const LOCK_TARGET = 7_326;

/** Takes a lock until the transaction ends. @returns false if another process has it */
export async function tryLock(client: ClientBase, lock: number): Promise<boolean> {
  const { rows } = await client.query<{ mine: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS mine', [lock]);
  return rows[0]?.mine === true;
}

/**
 * Repeats `work`, each time in its own transaction under `lock`. Ends when a statement finds fewer rows than a batch, or
 * when another process has the lock.
 * @param work its statement does not find the same rows again
 * @returns the total number of rows
 */
export async function inBatches(
  pool: Pool,
  about: { lock: number; batch: number },
  work: (client: PoolClient) => Promise<{ rowCount: number | null }>,
): Promise<number> {
  let total = 0;
  for (;;) {
    const began = performance.now();
    const count = (await inBatch(pool, about.lock, work))?.rowCount ?? 0;
    total += count;
    if (count < about.batch) return total;
    await restSince(began);
  }
}

/** Waits as long as the work since `began` took, so that background work takes at most half of the database's time. */
export function restSince(began: number): Promise<void> {
  return sleep(performance.now() - began);
}

/** Does `work` once in a transaction under `lock`. @returns undefined if another process has the lock */
export async function inBatch<Result>(
  pool: Pool,
  lock: number,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result | undefined> {
  return inTransaction(pool, async (client) => {
    if (!(await tryLock(client, lock))) return undefined;
    // These settings force index look-ups, whatever the planner expects: a batch is small and the tables are large.
    await client.query('SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off');
    return work(client);
  });
}

/**
 * Does `work` for all items as `inBatch` does. If that fails because of a statement, does it for each item alone, so that
 * one item stops no other.
 * @param work returns the number of items done
 * @param onFailed called for each item that fails alone
 * @returns the number of items done, or undefined if another process has the lock
 */
export async function inBatchOrOneByOne<Item>(
  pool: Pool,
  lock: number,
  items: readonly Item[],
  work: (client: PoolClient, items: readonly Item[]) => Promise<number>,
  onFailed: (item: Item | undefined, error: unknown) => void,
): Promise<number | undefined> {
  try {
    return await inBatch(pool, lock, (client) => work(client, items));
  } catch (error) {
    if (!isAboutStatement(error)) throw error;
    if (items.length === 1) {
      onFailed(items[0], error);
      return 0;
    }
    let done = 0;
    for (const item of items) {
      const count = await inBatchOrOneByOne(pool, lock, [item], work, onFailed);
      if (count === undefined) return undefined;
      done += count;
    }
    return done;
  }
}

/** True if Postgres refuses the values themselves (classes 21, 22 and 23, or a limit): a retry can never succeed. */
export function isDataError(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && /^(21|22|23|54)/.test(error.code ?? '');
}

/** Time for retries. A call to a POS and its retried write together fit into the lease of the call. */
const PERSIST_MS = 10_000;
const PERSIST_EVERY_MS = 250;

/**
 * Retries a write during a short outage of Postgres. Use it for data that only this process has, such as a POS's
 * answer. The write must be safe to repeat.
 */
export async function retryWrite<Result>(write: () => Promise<Result>): Promise<Result> {
  const until = performance.now() + PERSIST_MS;
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (isDataError(error) || performance.now() > until) throw error;
      await sleep(PERSIST_EVERY_MS);
    }
  }
}
