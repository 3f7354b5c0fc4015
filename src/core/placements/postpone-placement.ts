import type { Pool } from 'pg';
import type { Claim } from '../domain/placement.ts';
import { nameParameters } from '../postgres/name-parameters.ts';
import { END_ATTEMPT, END_ATTEMPT_PARAMETERS, attemptEndJson, type AttemptEnd } from './record-attempt.ts';

const { $, valuesOf } = nameParameters(
  ...END_ATTEMPT_PARAMETERS,
  'leaseId',
  'dueAt',
  'state',
  'problem',
  'delayS',
  'failed',
  'requestEnded',
);

const POSTPONE = `
  WITH ${END_ATTEMPT}
  UPDATE placements
  SET state = ${$.state}, problem = coalesce(left(${$.problem}, 500), problem),
      failures = CASE WHEN ${$.failed}::boolean THEN failures + 1 ELSE failures END,
      next_attempt_at = CASE
        WHEN next_attempt_at > ${$.dueAt}::timestamptz THEN next_attempt_at
        WHEN ${$.delayS}::float8 IS NULL THEN 'infinity'
        WHEN ${$.state} = 'waiting' THEN least(now() + make_interval(secs => ${$.delayS}), greatest(now(), deadline_at))
        ELSE now() + make_interval(secs => ${$.delayS}) END,
      request_ended_at = CASE WHEN ${$.requestEnded}::boolean THEN now() ELSE request_ended_at END,
      lease_id = NULL, lease_until = NULL
  WHERE service_order_id = ${$.serviceOrderId} AND lease_id = ${$.leaseId} AND finished_at IS NULL`;

/**
 * Puts a placement back: to be tried again, held for us to fix, or in doubt. Where it was made due again during the
 * attempt (a location put or resumed, a retry), that stands.
 * @param about.delayMs until the next try; undefined: an operator decides
 * @param about.requestEnded a request that the POS may have taken ended just now
 */
export async function postponePlacement(
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
    text: POSTPONE,
    values: valuesOf({
      ...claim,
      attemptEnd: attemptEndJson(about.end),
      state: about.state,
      problem: about.problem ?? null,
      delayS: about.delayMs === undefined ? null : about.delayMs / 1000,
      failed: about.failed ?? true,
      requestEnded: about.requestEnded ?? false,
    }),
  });
}
