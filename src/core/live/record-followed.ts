import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { liveProcesses } from '../domain/live-processes.ts';

/** SQL: whether a member follows the order `$1` in any process. Followers of a dead process count for half a minute. */
export const IS_FOLLOWED = `EXISTS (
  SELECT FROM followed_orders JOIN following_processes USING (process)
  WHERE service_order_id = $1 AND beat_at > now() - interval '30 s')`;

/**
 * Records that this process runs, and which orders members follow through it, so that operators of every process see it.
 * @returns a function that writes the changes since its last call, and counts the processes
 */
export function recordFollowed(pool: Pick<Pool, 'query'>, followed: () => ReadonlySet<string>): () => Promise<void> {
  let process = randomUUID();
  let written: ReadonlySet<string> = new Set();

  return async () => {
    const following = followed();
    try {
      const added = [...following].filter((id) => !written.has(id));
      const left = [...written].filter((id) => !following.has(id));
      const { rows } = await pool.query<{ begins: boolean; others: number }>(WRITE, [process, added, left]);
      // If another process took this one for dead, it deleted all rows. The next call then writes the other orders.
      written = rows[0]?.begins === true ? new Set(added) : following;
      liveProcesses.count = 1 + (rows[0]?.others ?? 0);
    } catch (error) {
      // The write may have been committed. Under a new id, the next calls write all orders, and the old rows expire.
      process = randomUUID();
      throw error;
    }
  };
}

const WRITE = `
  WITH beat AS (
    INSERT INTO following_processes (process, beat_at) VALUES ($1::uuid, now())
    ON CONFLICT (process) DO UPDATE SET beat_at = excluded.beat_at
    RETURNING xmax = 0 AS begins -- false for an updated row
  ), gone AS (
    DELETE FROM following_processes WHERE process IN (
      SELECT process FROM following_processes WHERE beat_at < now() - interval '30 s' AND process <> $1::uuid
      FOR UPDATE SKIP LOCKED) -- skips rows that another process is deleting
  ), added AS (
    INSERT INTO followed_orders (service_order_id, process) SELECT unnest($2::text[]), $1::uuid
  ), "left" AS (
    DELETE FROM followed_orders WHERE process = $1::uuid AND service_order_id = ANY ($3::text[])
  )
  SELECT begins, (SELECT count(*)::int FROM following_processes
                  WHERE beat_at > now() - interval '30 s' AND process <> $1::uuid) AS others FROM beat`;
