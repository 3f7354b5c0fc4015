import type { Pool } from 'pg';
import type { Claim } from '../domain/placement.ts';

/** What is told of a call whose process died. */
export const DIED = 'the process ended during the call';

/** Marks a placement whose process died during a call; the claim goes on. */
export async function enterDoubt(pool: Pool, claim: Claim): Promise<void> {
  await pool.query(
    `WITH p AS (
       UPDATE placements SET state = 'in_doubt', problem = '${DIED}', request_ended_at = now()
       WHERE service_order_id = $1 AND lease_id = $2 AND finished_at IS NULL
       RETURNING service_order_id
     )
     UPDATE placement_attempts a
     SET ended_at = clock_timestamp(), outcome = 'unknown', error = '${DIED}'
     FROM p WHERE a.service_order_id = p.service_order_id AND a.ended_at IS NULL`,
    [claim.serviceOrderId, claim.leaseId],
  );
}
