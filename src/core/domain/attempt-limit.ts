import type { Provider } from './provider.ts';

type Attempted = Pick<Provider, 'attemptWithinS'>;

/** Seconds of an attempt where its provider says nothing. */
const USUAL_S = 15;
/** The most that a provider may say. An order whose process died during a call waits for the lease, which covers it. */
export const LONGEST_ATTEMPT_S = 120;
/** From the attempt's row to the call (10 s, see `call-provider.ts`), and some air before another process may call. */
const SPARE_S = 15;

export function isAttemptLimit(seconds: unknown): boolean {
  return typeof seconds === 'number' && seconds > 0 && seconds <= LONGEST_ATTEMPT_S;
}

/** The seconds that one attempt may take, with all its requests. @param left fewer, down to one */
export function attemptLimit({ attemptWithinS = USUAL_S }: Attempted, left = Infinity): number {
  return Math.min(attemptWithinS, Math.max(1, Math.round(left)));
}

/** The seconds of a lease that an attempt begins with: by its end the call is over. */
export function attemptLease(provider: Attempted): number {
  // guard: lease-covers-call
  return attemptLimit(provider) + SPARE_S;
}
