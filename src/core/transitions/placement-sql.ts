import type { Pool } from 'pg';
import { RANK_SENT } from '../domain/lifecycle.ts';
import type { Claim } from '../domain/placement.ts';
import type { Problem } from '../domain/placement-cause.ts';

/**
 * SQL that is true if a placement is unfinished, for statements that select by id. With `IS NULL`, Postgres could use a
 * partial index of open placements. A plan cached while few were open would then scan the whole index at every call.
 */
export const IS_UNFINISHED = 'num_nulls(finished_at) = 1';

/**
 * SQL of a condition that locks the orders of the query `from`, which has FOR UPDATE, before the row of the statement:
 * Postgres evaluates a query that a condition reads before it locks a row that satisfies the condition. An order is
 * always locked before its placement and its cancellation, so two statements never wait for each other.
 * @param rows how many orders there must be. By default there may be none
 */
export const lockedFirst = (from: string, rows = '>= 0'): string => `(SELECT count(*) FROM ${from}) ${rows}`;

/**
 * SQL that restarts placements with a full deadline if they ended before the order was ever read, as failed or skipped.
 * Then no ticket can exist, unless a recovery found that the order had ended. A cancel of the platform is final. If the
 * member was notified of `failed`, later messages have higher sequence numbers. The full time is
 * `deadline_at - signalled_at`, which nothing changes before the order is read.
 * @param which SQL of the condition on the order's id
 */
export const restarting = (which: string): string => `
  UPDATE placements
  SET state = 'waiting', problem = NULL, cause = NULL, failures = 0, missing_since = NULL, finished_at = NULL,
      signalled_at = now(), deadline_at = now() + (deadline_at - signalled_at), next_attempt_at = now()
  WHERE service_order_id ${which} AND state IN ('failed', 'withdrawn')
    -- guard: ended-stays-ended
    AND cause ->> 'code' IS DISTINCT FROM 'order_ended'
    -- guard: cancelled-stays-cancelled
    AND cause ->> 'code' IS DISTINCT FROM 'order_cancelled'
    AND NOT EXISTS (SELECT FROM orders o WHERE o.service_order_id = placements.service_order_id)`;
export const RESTART = restarting('= $1');

/** SQL of whether an order `o` at its POS is wanted within the hour, and the POS has reported nothing about it. */
export const UNREPORTED = `(o.rank <= ${RANK_SENT} AND o.ended_at IS NULL
  AND (o.requested_at > now() + interval '1 h') IS NOT TRUE)`;

/** Releases a claim after an internal error. A call that had begun stays recorded in its attempt's row. */
export async function releaseClaim(pool: Pool, claim: Claim): Promise<void> {
  await pool.query(
    `UPDATE placements SET lease_id = NULL, lease_until = NULL, next_attempt_at = now() + interval '1 s'
     WHERE service_order_id = $1 AND lease_id = $2 AND ${IS_UNFINISHED} AND next_attempt_at <= now()`,
    [claim.serviceOrderId, claim.leaseId],
  );
}

/** SQL of when a doubt began that begins or goes on. NULL if a process of the previous version recorded it. */
export const NEXT_DOUBT_SINCE = `CASE WHEN state = 'in_doubt' THEN doubt_since ELSE now() END`;

/**
 * SQL that ends open calls whose result is unknown, for the orders in the query `from`. A request to cancel is left to
 * its cancellation: if its process died, only the open attempt prevents a second request.
 * @param error SQL of the error's text @param which SQL of the condition on the call
 */
export const endingCalls = (from: string, error: string, which = `<> 'cancelOrder'`): string => `
  UPDATE placement_attempts a SET ended_at = clock_timestamp(), outcome = 'unknown', error = ${error}
  FROM ${from} WHERE a.service_order_id = ${from}.service_order_id AND a.ended_at IS NULL
    -- guard: cancel-stays-open
    AND a.call ${which}`;

/** Puts a claimed placement in doubt and ends its open calls. The claim remains valid. */
export async function enterDoubt(
  pool: Pool,
  claim: Pick<Claim, 'serviceOrderId' | 'leaseId'>,
  { problem, cause }: Problem,
): Promise<void> {
  await pool.query(
    `WITH p AS (
       UPDATE placements SET state = 'in_doubt', problem = $3, cause = $4::jsonb, request_ended_at = now(),
         doubt_since = ${NEXT_DOUBT_SINCE}
       WHERE service_order_id = $1 AND lease_id = $2 AND ${IS_UNFINISHED}
       RETURNING service_order_id
     )
     ${endingCalls('p', '$3')}`,
    [claim.serviceOrderId, claim.leaseId, problem, cause],
  );
}

/**
 * SQL that makes the deferred refresh of order $1 due: what its answer waited for is decided now.
 * @param which a table expression with one row if so
 */
export const refreshDeferred = (which: string): string => `
  UPDATE refreshes r SET next_attempt_at = now() FROM ${which} AS decided
  -- guard: deferred-no-longer
  WHERE r.service_order_id = $1 AND r.failing_since IS NULL`;
