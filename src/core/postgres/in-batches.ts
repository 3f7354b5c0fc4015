import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { inTransaction } from './in-transaction.ts';
import { tryLock } from './locks.ts';

/**
 * Repeats `work`, each time in its own transaction under `lock`, until it finds less than a batch or another process
 * has the lock.
 * @param work returns the number of rows that it found and will not find again
 * @returns the number of rows in all
 */
export async function inBatches(
  pool: Pool,
  about: { lock: number; batch: number },
  work: (client: PoolClient) => Promise<number>,
): Promise<number> {
  let total = 0;
  for (;;) {
    const began = performance.now();
    const count = (await inBatch(pool, about.lock, work)) ?? 0;
    total += count;
    if (count < about.batch) return total;
    await restSince(began);
  }
}

/** Waits for as long as the work took, so that background work takes at most half of the database's time. */
export function restSince(began: number): Promise<void> {
  return sleep(performance.now() - began);
}

/** Does `work` once in such a transaction. @returns undefined if another process has the lock */
export async function inBatch<Result>(
  pool: Pool,
  lock: number,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result | undefined> {
  return inTransaction(pool, async (client) => {
    if (!(await tryLock(client, lock))) return undefined;
    // A batch is small and the tables are large: rows are looked up one by one, whatever the planner estimates.
    await client.query('SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off');
    return work(client);
  });
}
