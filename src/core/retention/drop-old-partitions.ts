import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { inTransaction, LOCK_DROP_PARTITIONS, tryLock } from '../postgres/transactions.ts';

/** Time for all tries of a round, and for the webhooks between two of them. The next round tries again. */
const PATIENCE_MS = 2_000;
const REST_MS = 400;
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Drops the partitions of `webhooks` that are wholly older than `retentionDays` days, one process at a time. Webhooks
 * wait for it no longer than the 100 ms that it waits for its lock; the drop itself takes a few. A day that an earlier
 * version detached and did not drop goes as well.
 * @returns the names of the dropped tables
 * @throws after all others, if a day could not be dropped: somebody reads it or `webhooks`, or something depends on it;
 *   to be tried again
 */
export async function dropOldPartitions(pool: Pool, retentionDays: number): Promise<string[]> {
  const dropped: string[] = [];
  const failures: unknown[] = [];
  const giveUpAt = performance.now() + PATIENCE_MS;
  for (const name of await findOld(pool, retentionDays)) {
    try {
      const isDropped = await dropPatiently(pool, name, giveUpAt);
      // Another process is at it, and goes on.
      if (isDropped === undefined) break;
      if (isDropped) dropped.push(name);
    } catch (error) {
      // One that cannot go must not keep other days.
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return dropped;
}

async function dropPatiently(pool: Pool, name: string, giveUpAt: number): Promise<boolean | undefined> {
  for (;;) {
    try {
      return await drop(pool, name);
    } catch (error) {
      const isLocked = (error as { code?: string }).code === LOCK_NOT_AVAILABLE;
      if (!isLocked || performance.now() > giveUpAt) throw error;
      await sleep(REST_MS);
    }
  }
}

/** @returns false if it is gone already, undefined if another process has the lock */
function drop(pool: Pool, name: string): Promise<boolean | undefined> {
  return inTransaction(pool, async (client) => {
    if (!(await tryLock(client, LOCK_DROP_PARTITIONS))) return undefined;
    const { rows } = await client.query<{ dropped: boolean }>(
      `SELECT drop_webhook_partition(to_date(right($1::text, 8), 'YYYYMMDD')) AS dropped`,
      [name],
    );
    return rows[0]?.dropped === true;
  });
}

/** They are known by name, which a detached table keeps. */
async function findOld(pool: Pool, retentionDays: number): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT c.relname AS name
     FROM pg_class parent
     JOIN pg_class c ON c.relnamespace = parent.relnamespace AND c.relkind = 'r' AND c.relname ~ '^webhooks_\\d{8}$'
     WHERE parent.oid = 'webhooks'::regclass
       AND c.relname::text < 'webhooks_' || to_char((now() AT TIME ZONE 'UTC')::date - $1::int, 'YYYYMMDD')
     ORDER BY c.relname`,
    [retentionDays],
  );
  return rows.map(({ name }) => name);
}
