import type { Pool } from 'pg';
import type { Claim } from '../domain/placement.ts';
import { problemOf } from '../domain/explain-cause.ts';
import type { PlacementCause, Problem } from '../domain/placement-cause.ts';
import { nameParameters } from '../postgres/sql-rows.ts';
import { NEXT_DOUBT_SINCE, IS_UNFINISHED } from '../transitions/placement-sql.ts';
import {
  type AttemptEnd,
  attemptEndJson,
  endAttemptIf,
  END_ATTEMPT_PARAMETERS,
} from '../transitions/record-attempt.ts';
import type { PlacementObserved } from '../domain/observed.ts';
import type { OrderRef } from '../domain/order.ts';
import type { Location } from '../locations/locations.ts';
import { backoff } from '../postgres/loops.ts';
import { retryWrite } from '../postgres/transactions.ts';
import { BACKOFF_MAX_MS } from './circuit-breaker.ts';
import {
  callOff,
  endCancelled,
  type FailsWith,
  failPlacement,
  skipPlacement,
  storeOrderRef,
  WITHDRAWN,
} from '../transitions/placement-outcomes.ts';
import type { PlacementDeps, PlacementJob } from './placement-job.ts';

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
  WITH p AS (
  UPDATE placements
  SET state = ${$.state}, problem = coalesce(left(${$.problem}, 500), problem), cause = coalesce(${$.cause}::jsonb, cause),
      failures = CASE WHEN ${$.failed}::boolean THEN failures + 1 ELSE failures END,
      next_attempt_at = CASE
        -- Only an order in doubt waits for a person.
        -- guard: waiting-is-due
        WHEN next_attempt_at > ${$.dueAt}::timestamptz AND (${$.state} = 'in_doubt' OR next_attempt_at < 'infinity')
          THEN next_attempt_at
        WHEN ${$.delayS}::float8 IS NULL THEN 'infinity'
        -- If cancellation was requested during the call, the placement is due now, so that it is withdrawn.
        WHEN ${$.state} <> 'in_doubt' AND (SELECT o.cancellation = 'requested' FROM orders o
                                           WHERE o.service_order_id = placements.service_order_id) THEN now()
        WHEN ${$.state} = 'waiting' THEN least(now() + make_interval(secs => ${$.delayS}), greatest(now(), deadline_at))
        ELSE now() + make_interval(secs => ${$.delayS}) END,
      request_ended_at = CASE WHEN ${$.requestEnded}::boolean THEN now() ELSE request_ended_at END,
      doubt_since = CASE WHEN ${$.state} = 'in_doubt' THEN ${NEXT_DOUBT_SINCE} END,
      lease_id = NULL, lease_until = NULL
  WHERE service_order_id = ${$.serviceOrderId} AND lease_id = ${$.leaseId} AND ${IS_UNFINISHED}
  RETURNING 1
  ), ${endAttemptIf(`(NOT ${$.requestEnded}::boolean OR (SELECT count(*) FROM p) = 1)`)}
  -- If the lease was lost, the doubt is not stored. The attempt then stays open, so that the next worker sees the doubt.
  SELECT`;

type Postponed = {
  state: 'waiting' | 'held' | 'in_doubt';
  /** The new problem. Without it, the old problem remains. */
  problem?: string;
  cause?: PlacementCause;
  /** Time until the next try. Undefined if an operator must decide. */
  delayMs: number | undefined;
  /** True if the try counts as a failure, which makes the next back-off longer. */
  failed: boolean;
  /** True if a request that the POS may have accepted has just ended. */
  requestEnded?: boolean;
  end?: AttemptEnd;
};

/**
 * Releases a placement as waiting, held, or in doubt. If the placement was made due again during the attempt, it stays
 * due. This happens when its location is changed or resumed, or when a retry is requested.
 */
async function postponePlacement(
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

/** The decision after a try. `end` is the end of the try's POS call, if there was one. */
export type Decision =
  /** The claim was lost to another process, so nothing is stored. */
  | { do: 'nothing' }
  | Stored
  | Failed
  /** Retries cannot succeed until an operator fixes the cause. */
  | ({ do: 'hold'; end?: AttemptEnd } & Problem)
  /** The POS certainly has no ticket. We retry soon, or after the wait that the POS or platform requested. */
  | ({ do: 'try later'; retryAfterMs?: number | undefined; end?: AttemptEnd } & Problem)
  /** The POS may have a ticket. We look it up, or send the same request again, after the same wait as above. */
  | ({ do: 'stay in doubt'; retryAfterMs?: number | undefined; requestEnded?: boolean; end?: AttemptEnd } & Problem)
  /** The POS may have a ticket. Only a person can find out. */
  | ({ do: 'ask operator'; requestEnded?: boolean; end?: AttemptEnd } & Problem)
  /** The order is to fail, and the POS may have a ticket. It fails once the ticket is certainly gone. */
  | ({ do: 'call off'; requestEnded?: boolean; end?: AttemptEnd } & FailsWith & Problem)
  /** The order is to be cancelled, and the POS certainly has no ticket. */
  | { do: 'withdraw' }
  /** Never read: the mapper says that the order is not for us, or the platform has cancelled it. */
  | ({ do: 'skip' } & Problem)
  /** The placement returns to its queue and is due now. Another worker claims it. */
  | ({ do: 'release' } & Partial<Problem>);

/** The ticket is at the POS. */
type Stored = { do: 'store ref'; location: Location; ref: OrderRef; end: AttemptEnd };
/** The order cannot be placed. The member reads `reason`, and the operator reads `problem`. */
type Failed = { do: 'fail'; late?: true; end?: AttemptEnd } & FailsWith & Problem;

/** The member's text if there is no better reason. */
export const REJECTED = 'the restaurant could not take the order';
/** The member's text after the deadline. */
export const UNREACHED = 'could not reach the POS';

/**
 * Fails a placement after its deadline, and keeps its last problem. Has no effect if the deadline was moved to a later
 * time meanwhile. If the order was held or never read, the POS is not to blame.
 */
export function failLate(job: Pick<Claim, 'state' | 'locationId' | 'problem'>): Failed {
  const { problem, cause } = problemOf({ code: 'deadline_passed' });
  return {
    do: 'fail',
    late: true,
    ...(job.state === 'held' || job.locationId === null
      ? { reason: REJECTED, reasonCode: 'technical' }
      : { reason: UNREACHED }),
    problem: job.problem === null ? problem : `${problem}; last problem: ${job.problem}`,
    cause,
  };
}

export const HELD_RETRY_MS = 30_000;
const LATE_RETRY_MS = 5_000;
const BACKOFF = { firstMs: 500, mostMs: BACKOFF_MAX_MS, jitter: 1 };

/**
 * The decision for an order that may have a ticket. Only a ticket's id, a proven absence, a person or a webhook ends a
 * doubt. Whatever prevents the next step, such as a platform that is down or has no such order, does not.
 */
function keepDoubt(decision: Decision): Decision {
  if (decision.do === 'try later') return { ...decision, do: 'stay in doubt' };
  return decision.do === 'fail' || decision.do === 'skip' ? { ...decision, do: 'ask operator' } : decision;
}

export async function concludePlacement(deps: PlacementDeps, job: PlacementJob, decided: Decision): Promise<void> {
  // guard: doubt-stays
  const decision = job.doubt === undefined ? decided : keepDoubt(decided);
  const postpone = (to: Pick<Postponed, 'state' | 'delayMs' | 'failed'>): Promise<void> =>
    retryWrite(() => postponePlacement(deps.pool, job, { ...to, ...decision }));
  const observe = (outcome: PlacementObserved['outcome'], state: Postponed['state']): void =>
    observePlacement(deps, job, outcome, { ...decision, entered: state !== job.state });

  switch (decision.do) {
    case 'nothing':
      return undefined;
    case 'store ref':
      return storeRef(deps, job, decision);
    case 'fail':
      return fail(deps, job, decision);
    case 'withdraw':
      return withdraw(deps, job);
    case 'skip':
      if (await retryWrite(() => skipPlacement(deps.pool, job, decision))) {
        observePlacement(deps, job, 'withdrawn', decision);
      }
      return deps.onLive();
    case 'hold': {
      const state = job.doubt === undefined ? 'held' : 'in_doubt';
      // Report the problem once, and not again at every retry.
      if (job.problem !== decision.problem) observe('held', state);
      return postpone({ state, delayMs: HELD_RETRY_MS, failed: false });
    }
    case 'try later':
      observe('waiting', 'waiting');
      return postpone({ state: 'waiting', delayMs: backOff(job, decision.retryAfterMs), failed: true });
    case 'stay in doubt':
      observe('in_doubt', 'in_doubt');
      return postpone({ state: 'in_doubt', delayMs: backOff(job, decision.retryAfterMs), failed: true });
    case 'call off':
    case 'ask operator':
      // guard: called-off
      if (decision.do === 'call off') await retryWrite(() => callOff(deps.pool, job, decision));
      observe('in_doubt', 'in_doubt');
      return postpone({ state: 'in_doubt', delayMs: undefined, failed: true });
    case 'release': {
      const state = job.doubt !== undefined ? 'in_doubt' : job.state === 'held' ? 'held' : 'waiting';
      // Without this wait, a late order in doubt would be claimed again and again until its location has a free worker.
      const delayMs = job.late && job.doubt !== undefined ? LATE_RETRY_MS : 0;
      return postpone({ state, delayMs, failed: false });
    }
  }
}

async function storeRef(deps: PlacementDeps, job: PlacementJob, { location, ref, end }: Stored): Promise<void> {
  const { serviceOrderId } = job;
  const { locationId, integration } = location;
  const stored = await retryWrite(() => storeOrderRef(deps.pool, serviceOrderId, integration, ref, end));
  if (stored.conflict) {
    const detail = 'we had already ended the order as failed or withdrawn, or its POS id belongs to another order';
    deps.observe({ what: 'conflict', serviceOrderId, locationId, integration, detail });
  }
  observePlacement(deps, job, 'sent', { end });
  deps.onLive();
  deps.onAwaited(stored.awaited);
}

async function fail(deps: PlacementDeps, job: PlacementJob, decision: Failed): Promise<void> {
  const isFailed = await retryWrite(() => failPlacement(deps.pool, job, decision));
  if (!isFailed && decision.late) return concludePlacement(deps, job, { do: 'release' });
  observePlacement(deps, job, 'failed', decision);
  return deps.onLive();
}

async function withdraw(deps: PlacementDeps, job: PlacementJob): Promise<void> {
  // If the result is undefined, a webhook or another worker was faster. Then there may be a ticket.
  if ((await retryWrite(() => endCancelled(deps.pool, job.serviceOrderId, WITHDRAWN))) === undefined) {
    return concludePlacement(deps, job, { do: 'release' });
  }
  observePlacement(deps, job, 'withdrawn', {});
  deps.onLive();
}

/** The back-off in milliseconds. It is at least the wait that the POS or the platform requested. */
export function backOff({ failures }: { failures: number }, retryAfterMs = 0): number {
  return Math.max(retryAfterMs, backoff(failures, BACKOFF));
}

/** Reports the result of a try. @param about.entered true if the placement's state is new; true by default */
export function observePlacement(
  deps: PlacementDeps,
  job: PlacementJob,
  outcome: PlacementObserved['outcome'],
  about: Partial<Problem> & { do?: Decision['do']; end?: AttemptEnd; entered?: boolean },
): void {
  deps.observe({
    what: 'placement',
    outcome,
    entered: about.entered ?? true,
    serviceOrderId: job.serviceOrderId,
    locationId: job.locationId,
    integration: job.integration,
    milliseconds: about.end?.milliseconds,
    sinceSignalMs: job.age * 1_000 + performance.now() - job.startedAt,
    problem: about.problem,
    cause: about.cause,
    forOperator: about.do === 'ask operator',
  });
}
