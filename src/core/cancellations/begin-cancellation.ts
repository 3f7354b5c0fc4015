import type { ClientBase, Pool } from 'pg';
import { CANCEL_WITHIN_S } from '../domain/placement.ts';
import { INSERT_SAME_STATUS, nextSequence } from '../live/outbox.ts';
import { endCancelled, WITHDRAWN } from '../transitions/placement-outcomes.ts';
import { attemptLease } from '../domain/timing.ts';
import { describeCause } from '../domain/explain-cause.ts';
import type { Problem } from '../domain/placement-cause.ts';
import type { Location } from '../locations/locations.ts';
import type { CancelClaim } from './claim-cancellations.ts';
import { endingCalls, refreshDeferred } from '../transitions/placement-sql.ts';
import { type AttemptEnd, attemptEndJson, END_ATTEMPT } from '../transitions/record-attempt.ts';
import { unlessErased } from './changed-order.ts';

/**
 * Begins to cancel a locked order. After this commit, no call that creates a ticket can begin: a worker about to send
 * the order loses the placement. A call under way continues, and its ticket is then cancelled. If there is no ticket,
 * the order is withdrawn in the same commit, so that no process can send it.
 * @param notifies true if there may be a ticket. Then the member is notified of the request
 */
export async function beginCancellation(
  client: ClientBase,
  serviceOrderId: string,
  { requestedBy, notifies }: { requestedBy: 'platform' | 'operator'; notifies: boolean },
): Promise<void> {
  await client.query({
    name: 'begin-cancellation',
    text: `
      WITH o AS (
        UPDATE orders
        SET cancellation = 'requested', updated_at = now(),
            sequence = CASE WHEN $3::boolean THEN ${nextSequence('sequence')} ELSE sequence END
        WHERE service_order_id = $1::text
        RETURNING service_order_id, location_id, rank, sequence, provider_order_id
      ), x AS (
        ${INSERT_SAME_STATUS}
        FROM o WHERE $3
      ), c AS (
        INSERT INTO cancellations AS c (service_order_id, location_id, requested_by, requested_at, deadline_at)
        -- The clock is read after the order is locked, so every createOrder call began before this time.
        SELECT service_order_id, location_id, $2, clock_timestamp(), now() + make_interval(secs => ${CANCEL_WITHIN_S}) FROM o
        ON CONFLICT (service_order_id) DO UPDATE
        SET requested_by = excluded.requested_by, requested_at = excluded.requested_at, state = 'due', deadline_at = excluded.deadline_at,
            fails_with = NULL, next_attempt_at = now(), failures = 0, problem = NULL, cause = NULL, finished_at = NULL, lease_id = NULL,
            lease_until = NULL
      )
      UPDATE placements
      SET next_attempt_at = now(), lease_id = NULL, lease_until = NULL
      WHERE service_order_id = $1 AND num_nulls(finished_at) = 1
        AND NOT EXISTS (SELECT FROM placement_attempts a WHERE a.service_order_id = $1 AND a.ended_at IS NULL)`,
    values: [serviceOrderId, requestedBy, notifies],
  });
  if (!notifies) await endCancelled(client, serviceOrderId, WITHDRAWN);
}

/**
 * Records a cancel request before it begins, as an attempt of the placement.
 * @returns the attempt's number, or undefined if the claim was lost or the order has ended
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
          AND (SELECT ended_at IS NULL FROM known) -- locks the order's row before the cancellation's
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

/** Extends a claim so that it lasts for a status read. @returns false if the claim was lost */
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

/** Ends the cancel request of a process that died. The request's result is unknown, so the cancellation is in doubt. */
export async function endDied(pool: Pool, { serviceOrderId, leaseId }: CancelClaim): Promise<void> {
  await pool.query(
    `WITH c AS (
       UPDATE cancellations SET state = 'in_doubt' WHERE service_order_id = $1 AND lease_id = $2::uuid
       RETURNING service_order_id
     )
     ${endingCalls('c', '$3', "= 'cancelOrder'")}`,
    [serviceOrderId, leaseId, describeCause({ code: 'process_died' })],
  );
}

/**
 * Ends a cancellation as refused. The order continues, and its member is notified. Has no effect if the cancellation is
 * finished or the order has ended.
 * @param about.end the end of the POS call that reported the refusal
 */
export async function refuseCancellation(
  client: Pool | ClientBase,
  serviceOrderId: string,
  about: Partial<Problem> & { end?: AttemptEnd | undefined },
): Promise<void> {
  await client.query({
    name: 'refuse-cancellation',
    text: `
      WITH ${END_ATTEMPT}, known AS MATERIALIZED (
        SELECT ended_at, erased_at FROM orders WHERE service_order_id = $1 FOR UPDATE
      ), c AS (
        UPDATE cancellations
        SET state = 'refused', finished_at = now(), lease_id = NULL, lease_until = NULL, problem = ${unlessErased('left($3, 500)')},
            cause = $4::jsonb
        -- This locks the order's row first. If the order has ended, the sweep finishes the cancellation.
        WHERE service_order_id = $1 AND num_nulls(finished_at) = 1 AND (SELECT ended_at IS NULL FROM known)
        RETURNING fails_with
      ), o AS (
        -- guard: refusal-notified
        UPDATE orders SET cancellation = CASE WHEN c.fails_with IS NULL THEN 'refused' END, sequence = ${nextSequence('sequence')}, updated_at = now()
        FROM c WHERE orders.service_order_id = $1
        RETURNING orders.service_order_id, sequence, rank, provider_order_id
      ), look AS (${refreshDeferred('c')}
      )
      ${INSERT_SAME_STATUS}
      FROM o`,
    values: [serviceOrderId, attemptEndJson(about.end), about.problem ?? null, about.cause ?? null],
  });
}
