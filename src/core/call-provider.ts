import { beginAttempt, type AttemptEnd } from './attempts.ts';
import type { Claim } from './claim-placements.ts';
import { GiveUp, OursToFix, TryAgain } from './errors.ts';
import type { Location } from './locations.ts';
import type { Placing } from './placing.ts';

/** Well inside the lease (30 s), so that a call is over before anybody else may begin one. */
const POS_TIMEOUT_MS = 15_000;
/** What is left of the lease. A process that slept for longer (SIGSTOP, a frozen machine) may have lost it. */
const BEGIN_WITHIN_MS = 10_000;

type CallEnd<Result> = { result: Result; end: AttemptEnd } | { error: unknown; end: AttemptEnd };

/** One call to the POS between its two rows. Undefined when the placement is no longer ours to try. */
export async function callProvider<Result>(
  deps: Placing,
  claim: Claim,
  name: 'createOrder' | 'findOrder',
  location: Location,
  call: (signal: AbortSignal) => Promise<Result>,
): Promise<CallEnd<Result> | undefined> {
  const asked = performance.now();
  const number = await beginAttempt(deps.pool, claim, name, location);
  if (number === undefined) return undefined;
  const began = performance.now();
  // The row says that a call began, which is on the safe side.
  if (began - asked > BEGIN_WITHIN_MS) return undefined;
  const ending = (outcome: string, error?: unknown): AttemptEnd => ({
    attempt: number,
    outcome,
    milliseconds: performance.now() - began,
    httpStatus: (error as { httpStatus?: number } | undefined)?.httpStatus,
    error: error === undefined ? undefined : describe(error),
  });
  try {
    const result = await underTimeLimit(call);
    return { result, end: ending(result === undefined ? 'absent' : 'placed') };
  } catch (error) {
    return { error, end: ending(error instanceof Error ? error.name : 'unknown', error) };
  }
}

/** A provider that forgets its signal must not outlive the lease either. */
async function underTimeLimit<Result>(call: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const signal = AbortSignal.timeout(POS_TIMEOUT_MS);
  const expired = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => {
    expired.reject(new TryAgain(`no answer in ${POS_TIMEOUT_MS} ms`, { sent: true }));
  });
  return Promise.race([call(signal), expired.promise]);
}

/** Our own errors say what may be said; any other may hold a member's data or a credential. */
export function describe(error: unknown): string {
  if (error instanceof TryAgain || error instanceof OursToFix || error instanceof GiveUp) return error.message;
  return `unexpected ${error instanceof Error ? error.name : typeof error}`;
}
