import { attemptLimit } from '../domain/attempt-limit.ts';
import { beginAttempt, type AttemptEnd, type CallName } from './record-attempt.ts';
import { describeError } from '../domain/describe-error.ts';
import { noteRequests } from '../egress/note-requests.ts';
import { askPos } from '../locations/ask-pos.ts';
import type { Location } from '../locations/locations.ts';
import type { PosContext } from '../domain/provider.ts';
import type { PlacementDeps, PlacementJob } from './placement-job.ts';
import { stopwatch } from '../domain/stopwatch.ts';
import { refusedFor } from '../domain/refused-for.ts';

/** Time from the row to the call. A process that was stopped for longer, or whose machine was, may have lost its lease. */
const BEGIN_WITHIN_MS = 10_000;

/** What a call to a POS needs. */
export type CallDeps = Pick<PlacementDeps, 'pool' | 'now' | 'credentialsFor' | 'posFetch' | 'observe' | 'breaker'>;

type CallEnd<Result> = { result: Result; end: AttemptEnd } | { error: unknown; end: AttemptEnd };

/**
 * Makes one call to the POS and records its beginning and end.
 * @param begin records the beginning
 * @returns undefined if the order is no longer ours to try
 */
export async function callProvider<Result>(
  deps: CallDeps,
  job: Pick<PlacementJob, 'serviceOrderId' | 'leaseId'> & { secondsLeft?: number },
  name: CallName,
  location: Location,
  call: (context: PosContext<unknown>) => Promise<Result>,
  begin: typeof beginAttempt = beginAttempt,
): Promise<CallEnd<Result> | undefined> {
  const sinceAsked = stopwatch();
  const number = await begin(deps.pool, job, name, location);
  if (number === undefined) return undefined;
  // The row remains without an end, which counts as a call that may have been made.
  // guard: no-late-call
  if (sinceAsked() > BEGIN_WITHIN_MS) return undefined;
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
    return { error, end: ending(error instanceof Error ? error.name : 'unknown', error) };
  }
}

/** The POS's own word for a cancel, or `not_asked`. */
function outcomeOf(name: CallName, result: unknown): string {
  if (name === 'cancelOrder') return typeof result === 'string' ? result : 'not_asked';
  return result === undefined ? 'absent' : 'placed';
}
