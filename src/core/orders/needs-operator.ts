import type { Pool } from 'pg';
import { NEEDS } from './needs-person.ts';

/**
 * SQL of whether an unfinished placement `p`, or a change or the cancellation of its order `o`, needs an operator. Few
 * orders have a cancellation, so the others are not looked up.
 */
export const NEEDS_OPERATOR = `(${NEEDS.held} OR ${NEEDS.in_doubt} OR ${NEEDS.changed} OR o.cancellation = 'requested' AND EXISTS (
  SELECT FROM cancellations c WHERE c.service_order_id = p.service_order_id AND ${NEEDS.cancel_by_phone})) IS TRUE`;

/** SQL of the time when an order ended. For an order without a row, when its placement ended. NULL while it is open. */
export const ENDED_AT = 'coalesce(o.ended_at, CASE WHEN o.rank IS NULL THEN p.finished_at END)';

/** Deletes cases unchanged for a day that say nothing any more, or whose order has ended and needs nobody. */
export async function deleteOldCases(pool: Pool): Promise<void> {
  await pool.query(
    `DELETE FROM cases k
     WHERE changed_at < now() - interval '24 h' AND (snoozed_until > now()) IS NOT TRUE
       AND (holder IS NULL OR EXISTS (
             SELECT FROM placements p LEFT JOIN orders o USING (service_order_id)
             WHERE p.service_order_id = k.service_order_id AND ${ENDED_AT} IS NOT NULL AND NOT ${NEEDS_OPERATOR}))`,
  );
}
