import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { inTransaction } from './in-transaction.ts';
import { tryLock } from './locks.ts';

/**
 * Does `work` again and again, each time in a transaction of its own under `lock`, until it finds less than a batch or
 * another process has the lock.
 * @param work says how many rows it found, none of which it finds again
 * @returns how many that were in all
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

/** As long as the work took, so that at most half of the database's time goes to what has time. */
export function restSince(began: number): Promise<void> {
  return sleep(performance.now() - began);
}

/** Does `work` in one such transaction. @returns undefined when another process has the lock */
export async function inBatch<Result>(
  pool: Pool,
  lock: number,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result | undefined> {
  return inTransaction(pool, async (client) => {
    if (!(await tryLock(client, lock))) return undefined;
    // A batch is little and the tables are large: looked up row by row, whatever the planner thinks of their size.
    await client.query('SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off');
    return work(client);
  });
}
