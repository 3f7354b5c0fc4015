import type { Pool } from 'pg';
import { BEGIN_AGAIN } from './begin-again.ts';
import { IS_OPEN } from './is-open.ts';

/**
 * Creates an order's placement, once. A signal for a known order changes nothing, unless that was never read: one that
 * failed begins again, one that is held is due now. The platform may have mended it.
 * @param deadlineS seconds from now after which the order is no longer worth placing
 * @returns 'recorded' if there is something to do now
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
      ), again AS (${BEGIN_AGAIN}
        RETURNING 1
      ), due AS (
        UPDATE placements SET next_attempt_at = now()
        WHERE service_order_id = $1 AND state = 'held' AND location_id IS NULL AND ${IS_OPEN}
        RETURNING 1
      )
      SELECT FROM new UNION ALL SELECT FROM again UNION ALL SELECT FROM due`,
    values: [serviceOrderId, deadlineS],
  });
  return rowCount === 1 ? 'recorded' : 'known';
}
