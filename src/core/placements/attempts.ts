/** The write-ahead record of calls to a POS, and what an attempt does to its placement. */
import type { Pool } from 'pg';
import type { PosId } from '../domain/webhook.ts';
import { LEASE_S, type Claim } from '../domain/placement.ts';
import { RANK_FAILED, RANK_SENT } from '../domain/lifecycle.ts';
import { insertOutbox } from '../live/outbox.ts';
import { posAccount, type Location } from '../locations/locations.ts';
import type { OrderRef } from '../domain/order.ts';

export type AttemptEnd = {
  attempt: number;
  outcome: string;
  milliseconds: number;
  httpStatus?: number | undefined;
  error?: string | undefined;
};

/**
 * Says in the database that a call is about to begin, before it does: whoever finds the row without an end knows that
 * the POS may have the order.
 * @returns the attempt's number, or undefined when the placement is no longer ours to try (lease lost, settled, ended)
 */
export async function beginAttempt(
  pool: Pool,
  claim: Claim,
  call: 'createOrder' | 'findOrder',
  location: Location,
): Promise<number | undefined> {
  const { rows } = await pool.query<{ attempt: number }>({
    name: 'begin-attempt',
    text: `
      WITH known AS MATERIALIZED (
        SELECT integration, ended_at FROM orders WHERE service_order_id = $1 FOR UPDATE
      ), p AS (
        UPDATE placements
        SET attempts = attempts + 1, lease_until = now() + make_interval(secs => ${LEASE_S}),
            requested_at = now(), pos_account = CASE WHEN $3 = 'createOrder' THEN $5 ELSE pos_account END
        WHERE service_order_id = $1 AND lease_id = $2 AND lease_until > now() AND finished_at IS NULL
          AND (SELECT ended_at IS NULL FROM known) -- the order's lock first, as everywhere
        RETURNING attempts
      ), died AS (
        UPDATE placement_attempts SET ended_at = clock_timestamp(), outcome = 'unknown'
        FROM p WHERE service_order_id = $1 AND ended_at IS NULL
      ), o AS (
        UPDATE orders SET integration = $4 FROM p WHERE service_order_id = $1 AND integration IS DISTINCT FROM $4
      )
      INSERT INTO placement_attempts (service_order_id, attempt, call) SELECT $1, attempts, $3 FROM p
      RETURNING attempt`,
    values: [claim.serviceOrderId, claim.leaseId, call, location.integration, posAccount(location)],
  });
  return rows[0]?.attempt;
}

/** Ends the attempt in the statement that draws the conclusion from it: between two, a crash would forget the call. */
const END_ATTEMPT = `ended AS (
  UPDATE placement_attempts
  SET ended_at = clock_timestamp(), outcome = ending.outcome, milliseconds = ending.milliseconds,
      http_status = ending.http_status,
      -- A POS may quote the member, who may have been erased during the call.
      error = CASE WHEN NOT EXISTS (SELECT FROM orders WHERE service_order_id = $1 AND erased_at IS NOT NULL)
              THEN left(ending.error, 500) END
  FROM jsonb_to_record($2::jsonb) AS ending(attempt int, outcome text, milliseconds int, http_status int, error text)
  WHERE service_order_id = $1 AND placement_attempts.attempt = ending.attempt
)`;

function endingOf(end: AttemptEnd | undefined): string | null {
  if (end === undefined) return null;
  return JSON.stringify({
    attempt: end.attempt,
    outcome: end.outcome,
    milliseconds: Math.round(end.milliseconds),
    http_status: end.httpStatus ?? null,
    error: end.error ?? null,
  });
}

/** Ends an attempt from which nothing follows for the placement. */
export async function endAttempt(pool: Pool, serviceOrderId: string, end: AttemptEnd): Promise<void> {
  await pool.query(`WITH ${END_ATTEMPT} SELECT`, [serviceOrderId, endingOf(end)]);
}

/**
 * Puts a placement back: to be tried again, held for us to fix, or in doubt. Where it was made due again during the
 * attempt (a location put or resumed, a retry), that stands.
 * @param about.delayMs until the next try; undefined: an operator decides
 * @param about.requestEnded a request that the POS may have taken ended just now
 */
export async function postpone(
  pool: Pool,
  claim: Claim,
  about: {
    state: 'waiting' | 'held' | 'in_doubt';
    problem: string | undefined;
    delayMs: number | undefined;
    requestEnded?: boolean;
    failed?: boolean;
    end?: AttemptEnd | undefined;
  },
): Promise<void> {
  await pool.query({
    name: 'postpone-placement',
    text: `
      WITH ${END_ATTEMPT}
      UPDATE placements
      SET state = $4, problem = coalesce(left($5, 500), problem),
          failures = CASE WHEN $8::boolean THEN failures + 1 ELSE failures END,
          next_attempt_at = CASE
            WHEN next_attempt_at > $9::timestamptz THEN next_attempt_at
            WHEN $6::float8 IS NULL THEN 'infinity'
            WHEN $4 = 'waiting' THEN least(now() + make_interval(secs => $6), greatest(now(), deadline_at))
            ELSE now() + make_interval(secs => $6) END,
          request_ended_at = CASE WHEN $7::boolean THEN now() ELSE request_ended_at END,
          lease_id = NULL, lease_until = NULL
      WHERE service_order_id = $1 AND lease_id = $3 AND finished_at IS NULL`,
    values: [
      claim.serviceOrderId,
      endingOf(about.end),
      claim.leaseId,
      about.state,
      about.problem ?? null,
      about.delayMs === undefined ? null : about.delayMs / 1000,
      about.requestEnded ?? false,
      about.failed ?? true,
      claim.dueAt,
    ],
  });
}

/** Gives a claim back after an error of our own; a call that had begun shows in its attempt. */
export async function giveBack(pool: Pool, claim: Claim): Promise<void> {
  await pool.query(
    `UPDATE placements SET lease_id = NULL, lease_until = NULL, next_attempt_at = now() + interval '1 s'
     WHERE service_order_id = $1 AND lease_id = $2 AND finished_at IS NULL AND next_attempt_at <= now()`,
    [claim.serviceOrderId, claim.leaseId],
  );
}

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

/**
 * The ticket is at the POS: stores its id, tells the member `sent` unless the POS was quicker or the order
 * has ended, stops all attempts.
 * Needs no lease: that the ticket is there stays true whoever holds the placement now.
 * @returns the POS id, when it became ours just now; and whether it contradicts what we know: we had told the member
 *   that the order failed, or the id is another order's
 */
export async function storeOrderRef(
  pool: Pool,
  serviceOrderId: string,
  integration: string,
  ref: OrderRef,
  end?: AttemptEnd,
): Promise<{ newPosIds: PosId[]; conflict: boolean }> {
  const { rows } = await pool.query<{ location_id: string; is_new: boolean; conflict: boolean }>({
    name: 'store-order-ref',
    text: `
      WITH ${END_ATTEMPT}, o AS MATERIALIZED (
        SELECT * FROM orders WHERE service_order_id = $1 FOR UPDATE
      ), foreign_id AS MATERIALIZED (
        SELECT FROM o JOIN provider_orders t USING (location_id)
        WHERE t.integration = $3 AND t.provider_order_id = $4 AND t.service_order_id <> $1
      ), p AS (
        UPDATE placements p
        SET state = CASE WHEN p.state = 'failed' THEN 'failed' ELSE 'sent' END, problem = NULL, failures = 0,
            provider_order_id = coalesce(p.provider_order_id, $4), request_ended_at = now(),
            finished_at = coalesce(p.finished_at, now()), lease_id = NULL, lease_until = NULL
        FROM o WHERE p.service_order_id = o.service_order_id
      ), ids AS (
        INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id)
        SELECT location_id, $3, $4, $1 FROM o WHERE $4::text IS NOT NULL
        ON CONFLICT DO NOTHING
        RETURNING 1
      ), u AS (
        UPDATE orders
        SET rank = CASE WHEN o.ended_at IS NULL THEN greatest(o.rank, ${RANK_SENT}) ELSE o.rank END, integration = $3,
            sequence = o.sequence + CASE WHEN o.rank < ${RANK_SENT} AND o.ended_at IS NULL THEN 1 ELSE 0 END,
            provider_order_id = coalesce(o.provider_order_id, CASE WHEN NOT EXISTS (SELECT FROM foreign_id) THEN $4 END),
            updated_at = now()
        FROM o WHERE orders.service_order_id = o.service_order_id
      ), x AS (
        ${insertOutbox({
          serviceOrderId: 'service_order_id',
          sequence: 'sequence + 1',
          rank: RANK_SENT,
          providerOrderId: '$4',
        })}
        FROM o WHERE rank < ${RANK_SENT} AND ended_at IS NULL
      )
      SELECT o.location_id, EXISTS (SELECT FROM ids) AS is_new,
             o.failed_by_us OR EXISTS (SELECT FROM foreign_id) AS conflict
      FROM o`,
    values: [serviceOrderId, endingOf(end), integration, ref.providerOrderId ?? null],
  });
  const row = rows[0];
  if (row === undefined) throw new Error('there is no such order');
  return {
    newPosIds:
      ref.providerOrderId !== undefined && row.is_new
        ? [{ locationId: row.location_id, integration, providerOrderId: ref.providerOrderId }]
        : [],
    conflict: row.conflict,
  };
}

/**
 * Ends a placement, and tells the member why. Before there is an order row only the placement says so. A POS event
 * that was quicker wins, and so does somebody who moved the deadline meanwhile.
 * @param about.reason what the member reads
 * @param about.problem what the operator reads
 * @param about.late it fails for the deadline alone
 * @returns false when it did not fail after all
 */
export async function failPlacement(
  pool: Pool,
  claim: Claim,
  about: { reason: string; problem: string; late?: boolean; end?: AttemptEnd | undefined },
): Promise<boolean> {
  const { rowCount } = await pool.query({
    name: 'fail-placement',
    text: `
      WITH ${END_ATTEMPT}, o AS MATERIALIZED (
        SELECT * FROM orders WHERE service_order_id = $1 FOR UPDATE
      ), p AS (
        UPDATE placements
        SET state = 'failed', problem = left($5, 500), finished_at = now(), lease_id = NULL, lease_until = NULL
        WHERE service_order_id = $1 AND lease_id = $3 AND finished_at IS NULL
          AND (NOT $6::boolean OR deadline_at < now())
          AND (SELECT count(*) FROM o) >= 0 -- the order's lock first, as everywhere
        RETURNING 1
      ), failing AS (
        SELECT o.* FROM o, p WHERE o.rank <= ${RANK_SENT} AND o.ended_at IS NULL
      ), u AS (
        UPDATE orders
        SET rank = ${RANK_FAILED}, sequence = f.sequence + 1, reason = left($4, 500),
            failed_by_us = true, updated_at = now(), ended_at = now()
        FROM failing f WHERE orders.service_order_id = f.service_order_id
      ), h AS (
        INSERT INTO status_events (service_order_id, status, native_status, outcome, sequence, reason)
        SELECT service_order_id, 'failed', 'not placed', 'applied', sequence + 1, left($4, 500) FROM failing
      ), x AS (
        ${insertOutbox({
          serviceOrderId: 'service_order_id',
          sequence: 'sequence + 1',
          rank: RANK_FAILED,
          reason: 'left($4, 500)',
        })}
        FROM failing
      )
      SELECT FROM p`,
    values: [
      claim.serviceOrderId,
      endingOf(about.end),
      claim.leaseId,
      about.reason,
      about.problem,
      about.late ?? false,
    ],
  });
  return rowCount === 1;
}
