import type { ClientBase, Pool } from 'pg';
import { LOCK_DROP_PARTITIONS, whileLocked } from '../postgres/locks.ts';

/** Time to wait for a lock, far more than a flush of webhooks takes. The next round tries again. */
const PATIENCE_MS = 2_000;

/** One day's table, in any state that an earlier round left. */
type DayTable = { name: string; state: 'attached' | 'pending' | 'detached'; old: boolean };

/**
 * Drops the partitions of `webhooks` that are wholly older than `retentionDays` days. Each is detached concurrently and
 * then dropped, neither of which blocks webhooks. One process at a time does it. What an interrupted round left,
 * pending or detached, the next one finishes.
 * @returns the names of the dropped tables
 * @throws if somebody holds an old snapshot or a lock on `webhooks` for long, or, after all others, if a table could
 *   not be dropped; to be tried again
 */
export async function dropOldPartitions(pool: Pool, retentionDays: number): Promise<string[]> {
  const dropped: string[] = [];
  const failures: unknown[] = [];
  // Detaching concurrently commits by itself, so the lock belongs to the session, not to a transaction.
  await whileLocked(pool, LOCK_DROP_PARTITIONS, async (client) => {
    await client.query(`SET lock_timeout = ${PATIENCE_MS}`);
    try {
      for (const table of await findTables(client, retentionDays)) {
        // A table has at most one pending detach. Until it is finished, no other can begin.
        if (table.state === 'pending')
          await client.query(`ALTER TABLE webhooks DETACH PARTITION ${table.name} FINALIZE`);
        if (!table.old) continue;
        // A view may depend on it, or somebody may lock it. That must not stop other days.
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

/** Finds the tables to process, a pending one first. They are known by name, which a detached table keeps. */
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
