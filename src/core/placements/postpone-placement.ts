import type { Pool } from 'pg';
import type { Claim } from '../domain/placement.ts';
import type { PlacementCause } from '../domain/placement-cause.ts';
import { nameParameters } from '../postgres/sql-rows.ts';
import { IS_OPEN } from './placement-sql.ts';
import { END_ATTEMPT, END_ATTEMPT_PARAMETERS, attemptEndJson, type AttemptEnd } from './record-attempt.ts';

const { $, valuesOf } = nameParameters(
  ...END_ATTEMPT_PARAMETERS,
  'leaseId',
  'dueAt',
  'state',
  'problem',
  'cause',
  'delayS',
  'failed',
  'requestEnded',
);

const POSTPONE = `
  WITH ${END_ATTEMPT}
  UPDATE placements
  SET state = ${$.state}, problem = coalesce(left(${$.problem}, 500), problem), cause = coalesce(${$.cause}::jsonb, cause),
      failures = CASE WHEN ${$.failed}::boolean THEN failures + 1 ELSE failures END,
      next_attempt_at = CASE
        WHEN next_attempt_at > ${$.dueAt}::timestamptz THEN next_attempt_at
        WHEN ${$.delayS}::float8 IS NULL THEN 'infinity'
        -- It was cancelled during the call, and is withdrawn.
        WHEN ${$.state} <> 'in_doubt' AND (SELECT o.cancellation = 'requested' FROM orders o
                                           WHERE o.service_order_id = placements.service_order_id) THEN now()
        WHEN ${$.state} = 'waiting' THEN least(now() + make_interval(secs => ${$.delayS}), greatest(now(), deadline_at))
        ELSE now() + make_interval(secs => ${$.delayS}) END,
      request_ended_at = CASE WHEN ${$.requestEnded}::boolean THEN now() ELSE request_ended_at END,
      lease_id = NULL, lease_until = NULL
  WHERE service_order_id = ${$.serviceOrderId} AND lease_id = ${$.leaseId} AND ${IS_OPEN}`;

export type Postponed = {
  state: 'waiting' | 'held' | 'in_doubt';
  /** The new problem; by default the old one stays. */
  problem?: string;
  cause?: PlacementCause;
  /** Time until the next try; undefined if an operator decides. */
  delayMs: number | undefined;
  /** Counts a failed try. */
  failed: boolean;
  /** True if a request that the POS may have taken ended just now. */
  requestEnded?: boolean;
  end?: AttemptEnd;
};

/**
 * Puts a placement back: waiting, held, or in doubt. If it was made due again during the attempt (a location put or
 * resumed, a retry), it stays due.
 */
export async function postponePlacement(
  pool: Pool,
  claim: Pick<Claim, 'serviceOrderId' | 'leaseId' | 'dueAt'>,
  about: Postponed,
): Promise<void> {
  await pool.query({
    name: 'postpone-placement',
    text: POSTPONE,
    values: valuesOf({
      serviceOrderId: claim.serviceOrderId,
      attemptEnd: attemptEndJson(about.end),
      leaseId: claim.leaseId,
      dueAt: claim.dueAt,
      state: about.state,
      problem: about.problem ?? null,
      cause: about.cause ?? null,
      delayS: about.delayMs === undefined ? null : about.delayMs / 1000,
      failed: about.failed,
      requestEnded: about.requestEnded ?? false,
    }),
  });
}
