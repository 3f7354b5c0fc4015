import type { ClientBase, Pool } from 'pg';
import { LOCK_DROP_PARTITIONS, whileLocked } from '../postgres/locks.ts';

/** Far above what a flush of webhooks takes; whoever holds on for longer is waited for in the next round. */
const PATIENCE_MS = 2_000;

/** One day's table, however far an earlier round came with it. */
type DayTable = { name: string; state: 'attached' | 'pending' | 'detached'; old: boolean };

/**
 * Drops the partitions of `webhooks` that lie wholly before the last `retentionDays` days. Each is detached
 * concurrently and then dropped, neither of which webhooks wait for. One process at a time does it; whatever a round
 * that was interrupted left, pending or detached, the next one finishes.
 * @returns the names of the tables that went
 * @throws when somebody holds an old snapshot or a lock on `webhooks` for long, or when a table could not be dropped,
 *   after all others; to be tried again
 */
export async function dropOldPartitions(pool: Pool, retentionDays: number): Promise<string[]> {
  const dropped: string[] = [];
  const failures: unknown[] = [];
  // Detaching concurrently commits by itself, so the lock is the session's and not a transaction's.
  await whileLocked(pool, LOCK_DROP_PARTITIONS, async (client) => {
    await client.query(`SET lock_timeout = ${PATIENCE_MS}`);
    try {
      for (const table of await findTables(client, retentionDays)) {
        // A table has one pending detach at most: until it is finished, no other can begin.
        if (table.state === 'pending')
          await client.query(`ALTER TABLE webhooks DETACH PARTITION ${table.name} FINALIZE`);
        if (!table.old) continue;
        // A view may depend on it, or somebody have locked it: that keeps no other day.
        await drop(client, table).then(
          () => dropped.push(table.name),
          (error: unknown) => failures.push(error),
        );
      }
    } finally {
      await client.query('RESET lock_timeout');
    }
  });
  if (failures.length > 0) throw failures[0];
  return dropped;
}

async function drop(client: ClientBase, { name, state }: DayTable): Promise<void> {
  if (state === 'attached') await client.query(`ALTER TABLE webhooks DETACH PARTITION ${name} CONCURRENTLY`);
  await client.query(`DROP TABLE ${name}`);
}

/** Those to do something with, a pending one first. They are known by their name, which a detached one keeps. */
async function findTables(client: ClientBase, retentionDays: number): Promise<DayTable[]> {
  const { rows } = await client.query<DayTable>(
    `SELECT * FROM (
       SELECT c.oid::regclass::text AS name,
              CASE WHEN i.inhdetachpending THEN 'pending' WHEN i.inhrelid IS NOT NULL THEN 'attached'
                   ELSE 'detached' END AS state,
              c.relname::text < 'webhooks_' || to_char((now() AT TIME ZONE 'UTC')::date - $1::int, 'YYYYMMDD') AS old
       FROM pg_class parent
       JOIN pg_class c ON c.relnamespace = parent.relnamespace AND c.relkind = 'r' AND c.relname ~ '^webhooks_\\d{8}$'
       LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = parent.oid
       WHERE parent.oid = 'webhooks'::regclass) AS t
     WHERE state = 'pending' OR old
     ORDER BY state = 'pending' DESC, name`,
    [retentionDays],
  );
  return rows;
}
