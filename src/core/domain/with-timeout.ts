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
  const timer = setTimeout(() => {
    aborting.abort(new DOMException(`no answer in ${milliseconds} ms`, 'TimeoutError'));
    expired.reject(late());
  }, milliseconds);
  try {
    return await Promise.race([call(aborting.signal), expired.promise]);
  } finally {
    clearTimeout(timer);
  }
}
