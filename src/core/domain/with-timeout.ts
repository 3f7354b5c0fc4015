import { TryAgain } from './errors.ts';

/**
 * Lets a provider call its POS for so long and no longer, even if it forgets its signal.
 * @throws what the call throws; TryAgain with `sent: true` once the time is up
 */
export async function withTimeout<Result>(
  milliseconds: number,
  call: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const signal = AbortSignal.timeout(milliseconds);
  const expired = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => {
    expired.reject(new TryAgain(`no answer in ${milliseconds} ms`, { sent: true }));
  });
  return Promise.race([call(signal), expired.promise]);
}
