/**
 * An order needs an operator if it is held, other than by a pause of its location; if it is in doubt and not tried again
 * automatically; or if only a person can cancel it. Lists, the board, metrics and the command line all use this SQL.
 */
import type { Pool } from 'pg';

/** SQL of the codes of causes that say that the location is paused. */
export const PAUSED_CAUSES = `'location_paused', 'location_paused_by_pos'`;
/** Of a placement `p`. */
export const HELD_FOR_OPERATOR = `(p.state = 'held' AND p.finished_at IS NULL
  AND (p.cause ->> 'code' IN (${PAUSED_CAUSES})) IS NOT TRUE)`;
export const DOUBT_FOR_OPERATOR = `(p.state = 'in_doubt' AND p.finished_at IS NULL AND p.next_attempt_at = 'infinity'
  -- The answer to its cancel settles the doubt.
  AND NOT EXISTS (SELECT FROM cancellations c WHERE c.service_order_id = p.service_order_id AND c.finished_at IS NULL
                                                AND c.next_attempt_at < 'infinity'))`;
/** SQL of when the doubt about a placement `p` began. The previous version does not record it. */
export const DOUBT_SINCE = 'coalesce(greatest(p.doubt_since, p.absent_at), p.signalled_at)';
/** Of a cancellation `c`. */
export const CANCEL_FOR_OPERATOR = `(c.finished_at IS NULL AND (c.state = 'by_phone' OR c.next_attempt_at = 'infinity'))`;

/** Of a placement `p` and its order `o`. Few orders have a cancellation, so the others are not looked up. */
export const NEEDS_OPERATOR = `(${HELD_FOR_OPERATOR} OR ${DOUBT_FOR_OPERATOR} OR o.cancellation = 'requested' AND EXISTS (
  SELECT FROM cancellations c WHERE c.service_order_id = p.service_order_id AND ${CANCEL_FOR_OPERATOR})) IS TRUE`;

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
