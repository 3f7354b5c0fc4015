import type { Pool, PoolClient } from 'pg';
import { inTransaction } from './in-transaction.ts';
import { tryLock } from './locks.ts';

/**
 * Does `work` again and again, each time in a transaction of its own under `lock`, until it finds less than a batch or
 * another process has the lock.
 * @param work says how many rows it dealt with
 * @returns how many that were in all
 */
export async function inBatches(
  pool: Pool,
  about: { lock: number; batch: number },
  work: (client: PoolClient) => Promise<number>,
): Promise<number> {
  let total = 0;
  for (;;) {
    const count = await inTransaction(pool, async (client) => {
      if (!(await tryLock(client, about.lock))) return 0;
      // A batch is little and the tables are large: looked up row by row, whatever the planner thinks of their size.
      await client.query('SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off');
      return work(client);
    });
    total += count;
    if (count < about.batch) return total;
  }
}
