import type { Pool } from 'pg';
import { attemptLease } from '../domain/attempt-limit.ts';
import { describeCause } from '../domain/placement-cause.ts';
import type { Location } from '../locations/locations.ts';
import type { CancelClaim } from './claim-cancellations.ts';

/**
 * Records a request to cancel before it begins. It has a row among the attempts of the placement.
 * @returns the attempt's number, or undefined if the cancellation is no longer ours, or the order has ended
 */
export async function beginCancel(
  pool: Pool,
  claim: Pick<CancelClaim, 'serviceOrderId' | 'leaseId'>,
  call: string,
  { provider }: Location,
): Promise<number | undefined> {
  const { rows } = await pool.query<{ attempt: number }>({
    name: 'begin-cancel',
    text: `
      WITH known AS MATERIALIZED (
        SELECT ended_at FROM orders WHERE service_order_id = $1 FOR UPDATE
      ), c AS (
        UPDATE cancellations SET lease_until = now() + make_interval(secs => $4::float8)
        WHERE service_order_id = $1 AND lease_id = $2::uuid AND lease_until > now() AND num_nulls(finished_at) = 1
          AND (SELECT ended_at IS NULL FROM known) -- the order's lock first, as everywhere
        RETURNING service_order_id
      ), p AS (
        UPDATE placements SET attempts = attempts + 1 FROM c
        WHERE placements.service_order_id = $1
        RETURNING attempts
      )
      -- guard: cancel-written
      INSERT INTO placement_attempts (service_order_id, attempt, call) SELECT $1, attempts, $3 FROM p
      RETURNING attempt`,
    values: [claim.serviceOrderId, claim.leaseId, call, attemptLease(provider)],
  });
  return rows[0]?.attempt;
}

/** Prolongs a claim for a read that takes long. @returns false if it is no longer ours */
export async function holdClaim(
  pool: Pool,
  { serviceOrderId, leaseId }: CancelClaim,
  provider: Location['provider'],
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `UPDATE cancellations SET lease_until = now() + make_interval(secs => $3::float8)
     WHERE service_order_id = $1 AND lease_id = $2::uuid AND lease_until > now() AND num_nulls(finished_at) = 1`,
    [serviceOrderId, leaseId, attemptLease(provider)],
  );
  return rowCount === 1;
}

/** SQL that ends requests to cancel of processes that died, of the orders in `c`. @param error SQL of what is said */
export const endingDied = (error: string): string => `
  UPDATE placement_attempts a SET ended_at = clock_timestamp(), outcome = 'unknown', error = ${error}
  FROM c WHERE a.service_order_id = c.service_order_id AND a.ended_at IS NULL AND a.call = 'cancelOrder'`;

/** Ends the request of a process that died: nobody knows its answer. */
export async function endDied(pool: Pool, { serviceOrderId, leaseId }: CancelClaim): Promise<void> {
  await pool.query(
    `WITH c AS (
       UPDATE cancellations SET state = 'in_doubt' WHERE service_order_id = $1 AND lease_id = $2::uuid
       RETURNING service_order_id
     )
     ${endingDied('$3')}`,
    [serviceOrderId, leaseId, describeCause({ code: 'process_died' })],
  );
}
