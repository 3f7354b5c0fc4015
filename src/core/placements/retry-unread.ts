import type { Pool } from 'pg';

/**
 * Makes held orders due that were never read: a process that starts may have another mapping. Those that somebody works
 * on are left to him.
 */
export async function retryUnread(pool: Pool): Promise<void> {
  await pool.query(
    `UPDATE placements SET next_attempt_at = now()
     WHERE service_order_id = ANY (ARRAY(
       SELECT service_order_id FROM placements
       WHERE finished_at IS NULL AND coalesce(location_id, '') = '' AND next_attempt_at > now() AND state = 'held'
       FOR UPDATE SKIP LOCKED))`,
  );
}
