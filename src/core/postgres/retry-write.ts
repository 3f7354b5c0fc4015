import { setTimeout as sleep } from 'node:timers/promises';

/** Together with a call to a POS still within the lease under which it was made. */
const PERSIST_MS = 10_000;
const PERSIST_EVERY_MS = 250;

/**
 * Writes down what a POS answered, which is known here alone: a blip of Postgres must not lose it. For writes that may
 * be repeated without harm.
 */
export async function retryWrite<Result>(write: () => Promise<Result>): Promise<Result> {
  const until = performance.now() + PERSIST_MS;
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (performance.now() > until) throw error;
      await sleep(PERSIST_EVERY_MS);
    }
  }
}
