import { stopwatch } from './stopwatch.ts';

/** Interval of looking at the clock: a timer does not count the time for which the machine is suspended. */
const LOOK_EVERY_MS = 250;

/**
 * Waits for a call at most this long, even if the call ignores its signal.
 * @param late makes the error when the time is up
 * @throws what the call throws
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
    timer = setTimeout(look, Math.min(LOOK_EVERY_MS, milliseconds - elapsed()));
  };
  const look = (): void => {
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
