import type { Pool } from 'pg';
import type { Claim } from '../domain/placement.ts';
import { IS_OPEN } from './is-open.ts';

/**
 * Records that the platform says that it has no such order.
 * @returns the seconds since it first said so, or undefined if the claim was lost meanwhile
 */
export async function recordMissing(
  pool: Pool,
  claim: Pick<Claim, 'serviceOrderId' | 'leaseId'>,
): Promise<number | undefined> {
  const { rows } = await pool.query<{ seconds: number }>({
    name: 'record-missing',
    text: `UPDATE placements SET missing_since = coalesce(missing_since, now())
           WHERE service_order_id = $1 AND lease_id = $2 AND ${IS_OPEN}
           RETURNING extract(epoch FROM now() - missing_since)::float8 AS seconds`,
    values: [claim.serviceOrderId, claim.leaseId],
  });
  return rows[0]?.seconds;
}
