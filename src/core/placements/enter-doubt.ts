import type { Pool } from 'pg';
import type { Claim } from '../domain/placement.ts';
import type { Why } from '../domain/placement-cause.ts';
import { IS_OPEN } from './is-open.ts';

/** Marks a placement that the POS may have, such as one whose process died during a call; the claim goes on. */
export async function enterDoubt(
  pool: Pool,
  claim: Pick<Claim, 'serviceOrderId' | 'leaseId'>,
  { problem, cause }: Why,
): Promise<void> {
  await pool.query(
    `WITH p AS (
       UPDATE placements SET state = 'in_doubt', problem = $3, cause = $4::jsonb, request_ended_at = now()
       WHERE service_order_id = $1 AND lease_id = $2 AND ${IS_OPEN}
       RETURNING service_order_id
     )
     UPDATE placement_attempts a
     SET ended_at = clock_timestamp(), outcome = 'unknown', error = $3
     FROM p WHERE a.service_order_id = p.service_order_id AND a.ended_at IS NULL`,
    [claim.serviceOrderId, claim.leaseId, problem, cause],
  );
}
