import { setTimeout as sleep } from 'node:timers/promises';
import { isDataError } from './is-data-error.ts';

/** Time for retries. With a call to a POS it fits into the lease under which the call was made. */
const PERSIST_MS = 10_000;
const PERSIST_EVERY_MS = 250;

/**
 * Retries a write whose data is known only here, such as a POS's answer, through a short outage of Postgres. The write
 * must be safe to repeat.
 */
export async function retryWrite<Result>(write: () => Promise<Result>): Promise<Result> {
  const until = performance.now() + PERSIST_MS;
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (isDataError(error) || performance.now() > until) throw error;
      await sleep(PERSIST_EVERY_MS);
    }
  }
}
