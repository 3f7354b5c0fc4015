import type { Pool } from 'pg';
import { RESTART, IS_UNFINISHED } from '../transitions/placement-sql.ts';

/**
 * Creates an order's placement at the first signal. A later signal refreshes an order that has not ended, because the
 * platform may have cancelled or changed it. If the order was never read, the signal restarts its failed placement or
 * makes its held placement due now, because the platform may have fixed the order. If the first fetch is under way, the
 * order is refreshed too, because that fetch may return a version older than the signal.
 * @param deadlineS seconds from now after which the order is no longer worth placing
 * @returns 'recorded' if there is something to place now
 */
export async function recordSignal(
  pool: Pool,
  serviceOrderId: string,
  deadlineS: number,
): Promise<'recorded' | 'known'> {
  const { rowCount } = await pool.query({
    name: 'record-signal',
    text: `
      WITH new AS (
        INSERT INTO placements (service_order_id, deadline_at) VALUES ($1, now() + make_interval(secs => $2::int))
        ON CONFLICT DO NOTHING
        RETURNING 1
      ), again AS (${RESTART}
        RETURNING 1
      ), due AS (
        UPDATE placements SET next_attempt_at = now()
        WHERE service_order_id = $1 AND state = 'held' AND location_id IS NULL AND ${IS_UNFINISHED}
        RETURNING 1
      ), look AS (
        INSERT INTO refreshes AS l (service_order_id)
        SELECT p.service_order_id FROM placements p LEFT JOIN orders o USING (service_order_id)
        -- guard: signal-refreshes
        WHERE p.service_order_id = $1
          AND CASE WHEN o.service_order_id IS NULL THEN p.lease_until > now()
                   ELSE o.ended_at IS NULL AND o.erased_at IS NULL END
        ON CONFLICT (service_order_id) DO UPDATE
          -- After a failure, keep the back-off, because the platform may have requested it.
          SET signalled_at = now(), next_attempt_at = CASE WHEN l.failures = 0 THEN now() ELSE l.next_attempt_at END
      )
      SELECT FROM new UNION ALL SELECT FROM again UNION ALL SELECT FROM due`,
    values: [serviceOrderId, deadlineS],
  });
  return rowCount === 1 ? 'recorded' : 'known';
}
