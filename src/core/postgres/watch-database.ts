import type { Pool } from 'pg';
import { withClient } from './transactions.ts';

/** `read_only`: Postgres answers but accepts no writes, like a standby. `unknown`: it has not been checked yet. */
export type DatabaseState = 'up' | 'read_only' | 'down' | 'unknown';

/** Checks Postgres through a pool connection. The pool closes the connection if its server accepts no writes. */
export async function databaseState(pool: Pool): Promise<DatabaseState> {
  let state: DatabaseState = 'down';
  const check = withClient(pool, async (client) => {
    const { rows } = await client.query<{ read_only: boolean }>({
      name: 'is-read-only',
      text: `SELECT current_setting('transaction_read_only')::boolean AS read_only`,
    });
    state = rows[0]?.read_only === true ? 'read_only' : 'up';
    if (state === 'read_only') throw new Error('the pool must close this connection');
  });
  await check.catch(() => {});
  return state;
}

export type DatabaseWatch = {
  state(): DatabaseState;
  /** True while Postgres is known to accept no writes. During this time only this watch queries it. */
  isAway(): boolean;
  /** Checks at once, unless a check is under way. Called periodically, and after a query without an answer. */
  check(): Promise<void>;
  stop(): void;
};

/** Time for an answer, after which Postgres counts as down. The query itself takes almost no time. */
const PATIENCE_MS = 300;
/** Pause between two checks while Postgres is away. */
const AGAIN_MS = 250;

/**
 * Watches whether Postgres accepts writes. It works like a circuit breaker: a failed check opens it, and the next
 * successful check closes it. Only one check runs at a time, so that a hanging check takes only one connection.
 * @param pool the pool whose connections are checked
 * @param onChange called after the first check, when Postgres becomes unavailable, and when it is available again
 */
export function watchDatabase(pool: Pool, onChange: (isAway: boolean) => void = () => {}): DatabaseWatch {
  let state: DatabaseState = 'unknown';
  let checking: Promise<void> | undefined;
  let again: NodeJS.Timeout | undefined;
  let isStopped = false;

  const isAway = (): boolean => state === 'down' || state === 'read_only';
  const see = (now: DatabaseState): void => {
    const [wasUnknown, wasAway] = [state === 'unknown', isAway()];
    state = now;
    if (wasUnknown || wasAway !== isAway()) onChange(isAway());
  };
  const checkOnce = async (): Promise<void> => {
    const late = setTimeout(see, PATIENCE_MS, 'down');
    const now = await databaseState(pool);
    clearTimeout(late);
    if (isStopped) return;
    see(now);
    clearTimeout(again);
    if (isAway()) again = setTimeout(() => void check(), AGAIN_MS);
  };
  const check = (): Promise<void> => {
    checking ??= checkOnce().finally(() => {
      checking = undefined;
    });
    return checking;
  };

  return {
    state: () => state,
    isAway,
    check,
    stop() {
      isStopped = true;
      clearTimeout(again);
    },
  };
}
