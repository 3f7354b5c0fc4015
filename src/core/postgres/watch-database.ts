import type { Pool } from 'pg';
import { withClient } from './transactions.ts';

/** `read_only`: it answers, and takes no writes, as a standby. `unknown`: nobody has looked yet. */
export type DatabaseState = 'up' | 'read_only' | 'down' | 'unknown';

/** Looks at Postgres by one of the pool's connections. One whose server takes no writes is not lent again. */
export async function databaseState(pool: Pool): Promise<DatabaseState> {
  let state: DatabaseState = 'down';
  const check = withClient(pool, async (client) => {
    const { rows } = await client.query<{ read_only: boolean }>({
      name: 'is-read-only',
      text: `SELECT current_setting('transaction_read_only')::boolean AS read_only`,
    });
    state = rows[0]?.read_only === true ? 'read_only' : 'up';
    if (state === 'read_only') throw new Error('costs the connection');
  });
  await check.catch(() => {});
  return state;
}

export type DatabaseWatch = {
  /** As it was last seen. */
  state(): DatabaseState;
  /** True while Postgres is known to take no writes. It is not asked then, but by this watch. */
  isAway(): boolean;
  /** Looks at once, unless it does already. Called now and then, and by whoever got no answer. */
  check(): Promise<void>;
  stop(): void;
};

/** Time for an answer. It asks for nothing that takes time. */
const PATIENCE_MS = 300;
/** Pause between two looks while Postgres is away. */
const AGAIN_MS = 250;

/**
 * Watches whether Postgres takes writes, as a circuit breaker does: open while it does not, and closed by the first
 * look that finds that it does. One look at a time, so that one which hangs takes one connection and no more.
 * @param pool whose connections are to be known to work
 * @param onChange called when Postgres goes away, and when it is back; first when it is first seen
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
