import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Polls until there is an answer.
 * @param ms only protects against hanging, so it is long: a slow machine must not fail a test
 * @throws after `ms`
 */
export async function until<Result>(
  ask: () => Result | undefined | false | Promise<Result | undefined | false>,
  ms = 60_000,
): Promise<Result> {
  const deadline = Date.now() + ms;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`did not come true in ${ms} ms: ${ask.toString()}`);
    await sleep(20);
  }
}
