import type { Provider } from './provider.ts';

/**
 * Measures time for a limit that must hold even if the machine is suspended, which stops the monotonic clock. So the
 * wall clock counts too. If somebody sets it forward, a call is given up too early.
 * @returns a function that returns the milliseconds since `stopwatch` was called, by the clock that has advanced more
 */
export function stopwatch(): () => number {
  const began = { monotonic: performance.now(), wall: Date.now() };
  return () => Math.max(performance.now() - began.monotonic, Date.now() - began.wall);
}

/** How often the clock is read, because one long timer would not count the time for which the machine is suspended. */
const CHECK_EVERY_MS = 250;

/**
 * Waits for a call at most this long, even if the call ignores its signal.
 * @param late a function that makes the error for when the time is up
 * @throws what the call throws, or the error of `late`
 */
export async function withTimeout<Result>(
  milliseconds: number,
  call: (signal: AbortSignal) => Promise<Result>,
  late: () => Error,
): Promise<Result> {
  const aborting = new AbortController();
  const expired = Promise.withResolvers<never>();
  const elapsed = stopwatch();
  let timer: NodeJS.Timeout | undefined;
  const wait = (): void => {
    // Of a negative time, Node prints a warning that is not in the log.
    timer = setTimeout(check, Math.max(0, Math.min(CHECK_EVERY_MS, milliseconds - elapsed())));
  };
  const check = (): void => {
    if (elapsed() < milliseconds) return wait();
    aborting.abort(new DOMException(`no answer in ${milliseconds} ms`, 'TimeoutError'));
    expired.reject(late());
  };
  wait();
  try {
    return await Promise.race([call(aborting.signal), expired.promise]);
  } finally {
    clearTimeout(timer);
  }
}

type Attempted = Pick<Provider, 'attemptWithinS'>;

/** The default time limit of an attempt in seconds. */
const USUAL_S = 15;
/** The most seconds that a provider may declare. If a process dies in a call, its order waits until the lease ends. */
export const LONGEST_ATTEMPT_S = 120;
/** Seconds of a lease besides the attempt: the time before the call (see `call-provider.ts`) and a reserve. */
const SPARE_S = 15;

export function isAttemptLimit(seconds: unknown): boolean {
  return typeof seconds === 'number' && seconds > 0 && seconds <= LONGEST_ATTEMPT_S;
}

/** The seconds that one attempt may take, with all its requests. @param left the seconds left, a further limit */
export function attemptLimit({ attemptWithinS = USUAL_S }: Attempted, left = Infinity): number {
  return Math.min(attemptWithinS, Math.max(1, Math.round(left)));
}

/** The seconds of an attempt's lease. The call ends before the lease does. */
export function attemptLease(provider: Attempted): number {
  // guard: lease-covers-call
  return attemptLimit(provider) + SPARE_S;
}
