import type { Pool } from 'pg';
import type { Claim } from '../domain/placement.ts';
import type { Why } from '../domain/placement-cause.ts';

/**
 * SQL that is true of a placement that is not finished, in statements that know its id. It is no `IS NULL`, which is the
 * condition of the indexes of open placements: planned while few were open, a statement would read one of those whole at
 * every call, and not one row by its id.
 */
export const IS_OPEN = 'num_nulls(finished_at) = 1';

/**
 * SQL that begins the placement of an order ($1) again, with its whole time before it, if it failed before it was ever
 * read: no ticket can exist. Its member was told `failed`, and the messages to come have higher sequences. A placement
 * that was never read has the deadline that its signal gave it.
 */
export const BEGIN_AGAIN = `
  UPDATE placements
  SET state = 'waiting', problem = NULL, cause = NULL, failures = 0, missing_since = NULL, finished_at = NULL,
      signalled_at = now(), deadline_at = now() + (deadline_at - signalled_at), next_attempt_at = now()
  WHERE service_order_id = $1 AND state = 'failed'
    AND NOT EXISTS (SELECT FROM orders o WHERE o.service_order_id = $1)`;

/** Releases a claim after an error of our own. A call that had begun shows in its attempt. */
export async function releaseClaim(pool: Pool, claim: Claim): Promise<void> {
  await pool.query(
    `UPDATE placements SET lease_id = NULL, lease_until = NULL, next_attempt_at = now() + interval '1 s'
     WHERE service_order_id = $1 AND lease_id = $2 AND ${IS_OPEN} AND next_attempt_at <= now()`,
    [claim.serviceOrderId, claim.leaseId],
  );
}

/** True if there is anything but nulls, empty lists and names of types. */
export function hasValue(value: unknown): boolean {
  if (value === null || value === undefined) return false;
  if (Array.isArray(value)) return value.some(hasValue);
  if (typeof value !== 'object') return true;
  const fields = Object.entries(value);
  return fields.length === 0 || fields.some(([key, field]) => key !== '__typename' && hasValue(field));
}

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
