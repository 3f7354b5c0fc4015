import type { PosContext } from '../domain/provider.ts';
import { type Location, WrongLocation } from '../locations/locations.ts';
import { attemptLimit, stopwatch } from '../domain/timing.ts';
import { type AttemptEnd, beginAttempt, type CallName } from '../transitions/record-attempt.ts';
import { classifyError, describeError, failedOutcome, refusedFor } from '../domain/classify-error.ts';
import { noteRequests } from '../egress/bounded-fetch.ts';
import { askPos } from '../locations/check-location.ts';
import { storable } from '../domain/cause-text.ts';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import { type Decision, failLate } from './conclude-placement.ts';
import { problemOf } from '../domain/explain-cause.ts';
import type { PlacementDeps, PlacementJob } from './placement-job.ts';
import type { FailsWith } from '../transitions/placement-outcomes.ts';
import type { ActiveOrder } from './record-order.ts';

/** A call begins at most this long after its attempt's row. A process suspended for longer may have lost its lease. */
const BEGIN_WITHIN_MS = 10_000;

export type CallDeps = Pick<PlacementDeps, 'pool' | 'now' | 'credentialsFor' | 'posFetch' | 'observe' | 'breaker'>;

type CallEnd<Result> = { result: Result; end: AttemptEnd } | { error: unknown; end: AttemptEnd };

/**
 * Makes one POS call and records its beginning. The caller must record the returned `end`.
 * @param begin the function that records the beginning
 * @returns undefined if no call was made. Then the lease is lost or may be lost, or `begin` did not allow the call
 */
export async function callProvider<Result>(
  deps: CallDeps,
  job: Pick<PlacementJob, 'serviceOrderId' | 'leaseId'> & { secondsLeft?: number },
  name: CallName,
  location: Location,
  call: (context: PosContext<unknown>) => Promise<Result>,
  begin: typeof beginAttempt = beginAttempt,
): Promise<CallEnd<Result> | undefined> {
  const sinceRecorded = stopwatch();
  const number = await begin(deps.pool, job, name, location);
  if (number === undefined) return undefined;
  // Make no call. The row remains without an end, so other workers assume that the call may have been made.
  // guard: no-late-call
  if (sinceRecorded() > BEGIN_WITHIN_MS) return undefined;
  const began = performance.now();
  const { locationId, integration, provider } = location;
  const requests = noteRequests(deps.posFetch);
  const ending = (outcome: string, error?: unknown): AttemptEnd => {
    const milliseconds = performance.now() - began;
    const { httpStatus } = (error ?? {}) as { httpStatus?: number };
    const about = { serviceOrderId: job.serviceOrderId, locationId, integration, call: name };
    const failed = error !== undefined;
    deps.observe({ what: 'attempt', ...about, outcome, milliseconds, httpStatus, failed, request: requests.last() });
    return {
      attempt: number,
      outcome,
      milliseconds,
      httpStatus,
      error: error === undefined ? undefined : describeError(error),
      reasonCode: refusedFor(error).reasonCode,
    };
  };
  try {
    const noted = { ...deps, posFetch: requests.fetch };
    const result = await askPos(
      noted,
      location,
      { seconds: attemptLimit(provider, job.secondsLeft), sent: true },
      call,
    );
    deps.breaker.callEnded(location, began);
    return { result, end: ending(outcomeOf(name, result)) };
  } catch (error) {
    deps.breaker.callEnded(location, began, error);
    return { error, end: ending(failedOutcome(error), error) };
  }
}

/** For a cancel, the outcome is the provider's result, or `not_asked` if the provider made no request. */
function outcomeOf(name: CallName, result: unknown): string {
  if (name === 'cancelOrder') return typeof result === 'string' ? result : 'not_asked';
  return result === undefined ? 'absent' : 'placed';
}

/** Why an order fails that its POS refuses. */
export function refusalOf(error: GiveUp): FailsWith {
  return { reason: storable(error.reason), ...refusedFor(error) };
}

/** Decides after an error that proves that the POS has no ticket. The class of the error determines the decision. */
export function decideByKind(error: unknown): Extract<Decision, { do: 'fail' | 'hold' | 'try later' }> {
  const about = classifyError(error);
  if (error instanceof GiveUp) return { do: 'fail', ...refusalOf(error), ...about };
  if (error instanceof NeedsOperator) return { do: 'hold', ...about };
  return { do: 'try later', retryAfterMs: waitAfter(error), ...about };
}

/** The wait in milliseconds that the POS or the platform requested with this error. */
export function waitAfter(error: unknown): number | undefined {
  return error instanceof TryAgain ? error.retryAfterMs : undefined;
}

/** Finds the order's location and decrypts its settings. A pause does not apply to an order that is to be cancelled. */
export async function findUsableLocation(
  deps: PlacementDeps,
  job: PlacementJob,
  { order: { locationId }, cancelled, location: found }: ActiveOrder,
): Promise<Location | Decision> {
  job.locationId = locationId;
  job.integration = found?.integration ?? job.integration;
  if (found?.paused && !cancelled) {
    const { posPausedUntil: until } = found;
    return until === null
      ? { do: 'hold', ...problemOf({ code: 'location_paused' }) }
      : { do: 'hold', ...problemOf({ code: 'location_paused_by_pos', until: until.toISOString() }) };
  }
  if (job.late && job.doubt === undefined) return failLate(job);
  if (found?.needsReconnect === true && !cancelled) return { do: 'hold', ...problemOf({ code: 'reconnect_needed' }) };
  if (found === undefined) return { do: 'hold', ...problemOf({ code: 'no_location' }) };
  const { integration } = found;
  try {
    return { locationId, integration, ...(await deps.decryptSettings(found)) };
  } catch (error) {
    if (error instanceof WrongLocation) return { do: 'hold', ...classifyError(error), problem: error.message };
    throw error;
  }
}
