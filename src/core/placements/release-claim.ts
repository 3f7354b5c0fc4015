import type { Pool } from 'pg';
import type { Claim } from '../domain/placement.ts';
import { IS_OPEN } from './is-open.ts';

/** Releases a claim after an error of our own. A call that had begun shows in its attempt. */
export async function releaseClaim(pool: Pool, claim: Claim): Promise<void> {
  await pool.query(
    `UPDATE placements SET lease_id = NULL, lease_until = NULL, next_attempt_at = now() + interval '1 s'
     WHERE service_order_id = $1 AND lease_id = $2 AND ${IS_OPEN} AND next_attempt_at <= now()`,
    [claim.serviceOrderId, claim.leaseId],
  );
}
