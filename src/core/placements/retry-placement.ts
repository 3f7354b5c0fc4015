import type { Pool } from 'pg';
import type { PlacementState } from '../domain/placement.ts';

/**
 * Makes a placement due now instead of at the end of its back-off. Workers see it within a second.
 * @returns `due`; `under_way` when a worker has it this very moment, which is as good; why it cannot be tried again;
 *   or undefined when there is no such order
 */
export async function retryPlacement(
  pool: Pool,
  serviceOrderId: string,
): Promise<'due' | 'under_way' | { refused: string } | undefined> {
  const { rows } = await pool.query<{ state: PlacementState; finished: boolean; underWay: boolean; asks: boolean }>(
    `WITH was AS MATERIALIZED (
       SELECT state, finished_at IS NOT NULL AS finished, coalesce(lease_until > now(), false) AS under_way,
              next_attempt_at = 'infinity' AS asks
       FROM placements WHERE service_order_id = $1 FOR UPDATE
     ), due AS (
       UPDATE placements SET next_attempt_at = now()
       FROM was WHERE service_order_id = $1 AND NOT (was.finished OR was.under_way OR was.asks)
     )
     SELECT state, finished, under_way AS "underWay", asks FROM was`,
    [serviceOrderId],
  );
  const was = rows[0];
  if (was === undefined) return undefined;
  if (was.state === 'failed') {
    return { refused: 'it has failed, which is final: the member was told, and the platform places a new order' };
  }
  if (was.finished) return { refused: 'its ticket is at the POS already' };
  if (was.underWay) return 'under_way';
  if (was.asks) return { refused: 'the POS may have it, so it is not repeated blindly: look there and resolve it' };
  return 'due';
}
