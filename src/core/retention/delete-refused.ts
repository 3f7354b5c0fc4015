import type { Pool } from 'pg';
import { inBatches, LOCK_DELETE_REFUSED } from '../postgres/transactions.ts';

const BATCH = 1_000;

/**
 * Deletes webhooks that were refused for an old token `keptS` seconds ago or longer. What a replay made of one is a
 * webhook of its own, and stays.
 * @returns how many
 */
export async function deleteRefused(pool: Pool, keptS: number): Promise<number> {
  return inBatches(pool, { lock: LOCK_DELETE_REFUSED, batch: BATCH }, async (client) => {
    const { rowCount } = await client.query(DELETE, [keptS]);
    return rowCount ?? 0;
  });
}

const DELETE = `
  WITH old AS MATERIALIZED (
    SELECT day, location_id, id FROM webhooks
    WHERE cause ->> 'code' = 'old_token' AND received_at < now() - make_interval(secs => $1::int)
      AND day <= ((now() - make_interval(secs => $1::int)) AT TIME ZONE 'UTC')::date
    LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
  )
  DELETE FROM webhooks d USING old
  WHERE d.day = old.day AND d.location_id = old.location_id AND d.id = old.id`;
