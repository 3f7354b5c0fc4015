/** The write-ahead record of POS calls. A row without an end is a call under way or a call that was cut off. */
import type { Pool } from 'pg';
import { attemptLease } from '../domain/timing.ts';
import { storable } from '../domain/cause-text.ts';
import type { ReasonCode } from '../domain/reason-code.ts';
import type { Claim } from '../domain/placement.ts';
import { posAccount, type Location } from '../locations/locations.ts';
import { endingCalls, IS_UNFINISHED } from './placement-sql.ts';

export type CallName = 'createOrder' | 'findOrder' | 'cancelOrder';

export type AttemptEnd = {
  attempt: number;
  outcome: string;
  milliseconds: number;
  httpStatus?: number | undefined;
  error?: string | undefined;
  /** Machine-readable reason for a refusal by the POS. */
  reasonCode?: ReasonCode | undefined;
};

/**
 * Records a call before it begins. If this process dies, the row has no end, which means that the POS may have the
 * order. After a cancellation was requested, no call that creates a ticket can begin.
 * @returns the attempt's number. Undefined if no call may begin, because the lease was lost, the placement is finished,
 *   or the order has ended or is to be cancelled
 */
export async function beginAttempt(
  pool: Pool,
  claim: Pick<Claim, 'serviceOrderId' | 'leaseId'>,
  call: CallName,
  location: Location,
  extraMinutes?: number,
): Promise<number | undefined> {
  const { rows } = await pool.query<{ attempt: number }>({
    name: 'begin-attempt',
    text: `
      WITH known AS MATERIALIZED (
        SELECT integration, ended_at, cancellation FROM orders WHERE service_order_id = $1 FOR UPDATE
      ), p AS (
        UPDATE placements
        SET attempts = attempts + 1, lease_until = now() + make_interval(secs => $6::float8),
            requested_at = now(), pos_account = CASE WHEN $3 = 'createOrder' THEN $5 ELSE pos_account END
        WHERE service_order_id = $1 AND lease_id = $2 AND lease_until > now() AND ${IS_UNFINISHED}
          -- guard: no-ticket-after-cancel
          AND (SELECT ended_at IS NULL AND (cancellation IS NULL OR $3 <> 'createOrder')
               FROM known) -- locks the order's row before the placement's
        RETURNING service_order_id, attempts
      ), died AS (${endingCalls('p', 'NULL')}
      ), o AS (
        UPDATE orders o SET integration = $4 FROM p WHERE o.service_order_id = $1 AND integration IS DISTINCT FROM $4
      )
      -- guard: attempt-written
      INSERT INTO placement_attempts (service_order_id, attempt, call, extra_minutes) SELECT $1, attempts, $3, $7::int FROM p
      RETURNING attempt`,
    values: [
      claim.serviceOrderId,
      claim.leaseId,
      call,
      location.integration,
      posAccount(location),
      attemptLease(location.provider),
      extraMinutes ?? null,
    ],
  });
  return rows[0]?.attempt;
}

/** Returns the seconds since the order was first sent. From then on, the POS may know its idempotency key. */
export async function secondsSinceFirstSent(pool: Pool, serviceOrderId: string): Promise<number> {
  const { rows } = await pool.query<{ seconds: number | null }>(
    // After a restore there may be no attempt: then its signal counts.
    `SELECT extract(epoch FROM now() - coalesce(
       (SELECT min(started_at) FROM placement_attempts WHERE service_order_id = $1 AND call = 'createOrder'),
       signalled_at))::float8 AS seconds
     FROM placements WHERE service_order_id = $1`,
    [serviceOrderId],
  );
  return rows[0]?.seconds ?? 0;
}

/** Whether an order of the location got the id of its ticket within the last day. */
export async function namedTicketLately(pool: Pool, locationId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `SELECT FROM placements
     WHERE location_id = $1 AND signalled_at > now() - interval '1 day' AND provider_order_id IS NOT NULL LIMIT 1`,
    [locationId],
  );
  return rowCount !== 0;
}

/** Returns the minutes that the last `createOrder` added because the kitchen was busy; undefined if it added none. */
export async function lastExtraMinutes(pool: Pool, serviceOrderId: string): Promise<number | undefined> {
  const { rows } = await pool.query<{ minutes: number | null }>(
    `SELECT extra_minutes AS minutes FROM placement_attempts
     WHERE service_order_id = $1 AND call = 'createOrder' ORDER BY attempt DESC LIMIT 1`,
    [serviceOrderId],
  );
  return rows[0]?.minutes ?? undefined;
}

/** The parameters $1 and $2 of every statement that contains END_ATTEMPT. */
export const END_ATTEMPT_PARAMETERS = ['serviceOrderId', 'attemptEnd'] as const;

/** SQL that ends an attempt, within the statement that stores the call's result. A crash cannot separate the two. */
export const endAttemptIf = (condition: string): string => `ended AS (
  UPDATE placement_attempts
  SET ended_at = clock_timestamp(), outcome = ending.outcome, milliseconds = ending.milliseconds,
      http_status = ending.http_status, reason_code = ending.reason_code,
      -- Drop the text if the order was erased during the call, because the text may contain member data.
      error = CASE WHEN NOT EXISTS (SELECT FROM orders WHERE service_order_id = $1 AND erased_at IS NOT NULL)
              THEN left(ending.error, 500) END
  FROM jsonb_to_record($2::jsonb)
    AS ending(attempt int, outcome text, milliseconds int, http_status int, error text, reason_code text)
  WHERE service_order_id = $1 AND placement_attempts.attempt = ending.attempt AND ${condition}
)`;
export const END_ATTEMPT = endAttemptIf('true');

export function attemptEndJson(end: AttemptEnd | undefined): string | null {
  if (end === undefined) return null;
  return JSON.stringify({
    attempt: end.attempt,
    outcome: storable(end.outcome),
    milliseconds: Math.round(end.milliseconds),
    http_status: end.httpStatus ?? null,
    error: end.error ?? null,
    reason_code: end.reasonCode ?? null,
  });
}

/** Ends an attempt whose result does not change the placement. */
export async function endAttempt(pool: Pool, serviceOrderId: string, end: AttemptEnd): Promise<void> {
  await pool.query(`WITH ${END_ATTEMPT} SELECT`, [serviceOrderId, attemptEndJson(end)]);
}
