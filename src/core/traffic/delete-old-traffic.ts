import type { Pool } from 'pg';
import { inBatches, LOCK_DELETE_TRAFFIC } from '../postgres/transactions.ts';
import { TRAFFIC_KEPT_S } from './count-traffic.ts';

const BATCH = 5_000;

/** Deletes traffic older than a day, which nobody reads. @returns the number of rows */
export function deleteOldTraffic(pool: Pool): Promise<number> {
  return inBatches(pool, { lock: LOCK_DELETE_TRAFFIC, batch: BATCH }, async (client) => {
    const { rowCount } = await client.query(
      `DELETE FROM traffic WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM traffic WHERE minute < now() - make_interval(secs => ${TRAFFIC_KEPT_S})
         ORDER BY minute LIMIT ${BATCH} FOR UPDATE SKIP LOCKED))`,
    );
    return rowCount ?? 0;
  });
}
