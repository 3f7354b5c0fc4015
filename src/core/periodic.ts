import type { Pool } from 'pg';

/** Does `work` every so often, never twice at a time; an error is logged, and the next round comes all the same. */
export function every(
  milliseconds: number,
  work: () => Promise<unknown>,
  log: { warn(about: object, message: string): void },
  name: string,
): { stop(): Promise<void> } {
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    running ??= work()
      .then(() => {})
      .catch((error: unknown) => log.warn({ err: error }, `${name} failed; comes again`))
      .finally(() => {
        running = undefined;
      });
  }, milliseconds);
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}

/** Does `work` unless another process does the same now. The lock goes with its connection, so a dead one holds nothing. */
export async function onceAmongAll<Result>(
  pool: Pool,
  lock: number,
  work: () => Promise<Result>,
): Promise<Result | undefined> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const onError = (error: Error): void => {
    broken = error;
  };
  client.on('error', onError);
  try {
    const { rows } = await client.query<{ mine: boolean }>('SELECT pg_try_advisory_lock($1) AS mine', [lock]);
    if (!rows[0]?.mine) return undefined;
    try {
      return await work();
    } finally {
      await client.query('SELECT pg_advisory_unlock($1)', [lock]).catch((error: Error) => {
        broken ??= error;
      });
    }
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}
