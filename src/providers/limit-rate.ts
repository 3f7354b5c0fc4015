import { TryAgain } from '../core/domain/errors.ts';

/** Requests allowed in a window, which begins at a multiple of its length, as vendors count minutes, hours and days. */
export type Allowance = { requests: number; seconds: number };

/** The requests of one caller, such as a connection or a restaurant. */
type Spent = { spans: { began: number; requests: number }[]; closedUntil: number };

/** The most callers remembered, more than a process has locations. Beyond it the oldest is removed. */
const CALLERS = 10_000;

/**
 * Limits the requests of each caller to a POS, as far as one process can. Requests of other processes show only when
 * the POS answers 429: then all requests of this caller wait as long as the POS asks.
 * @param allowances none if the vendor publishes no figures
 * @returns a function that runs a request at once, or throws TryAgain with `sent: false` and the wait
 */
export function limitRate(
  allowances: readonly Allowance[],
): <Result>(caller: string, now: Date, request: () => Promise<Result>) => Promise<Result> {
  const callers = new Map<string, Spent>();

  const spentBy = (caller: string): Spent => {
    const known = callers.get(caller);
    if (known !== undefined) return known;
    const [oldest] = callers.keys();
    if (callers.size >= CALLERS && oldest !== undefined) callers.delete(oldest);
    const spent: Spent = { spans: allowances.map(() => ({ began: 0, requests: 0 })), closedUntil: 0 };
    callers.set(caller, spent);
    return spent;
  };

  /** @returns milliseconds until a request is allowed; if 0, the request is counted */
  const enter = (spent: Spent, at: number): number => {
    const waits = allowances.map(({ requests, seconds }, nth) => {
      const length = seconds * 1000;
      const began = at - (at % length);
      const span = spent.spans[nth];
      if (span === undefined) return 0;
      if (span.began !== began) Object.assign(span, { began, requests: 0 });
      return span.requests < requests ? 0 : began + length - at;
    });
    const wait = Math.max(spent.closedUntil - at, 0, ...waits);
    if (wait === 0) for (const span of spent.spans) span.requests += 1;
    return wait;
  };

  return async (caller, now, request) => {
    const spent = spentBy(caller);
    const retryAfterMs = enter(spent, now.getTime());
    if (retryAfterMs > 0) {
      throw new TryAgain('the POS has had as many requests as it allows for now', { sent: false, retryAfterMs });
    }
    try {
      return await request();
    } catch (error) {
      if (error instanceof TryAgain && error.httpStatus === 429) {
        spent.closedUntil = now.getTime() + (error.retryAfterMs ?? 0);
      }
      throw error;
    }
  };
}
