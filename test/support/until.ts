import { setTimeout as sleep } from 'node:timers/promises';

/** Polls until there is an answer. @throws after `ms`, with the last answer */
export async function until<Result>(
  ask: () => Result | undefined | false | Promise<Result | undefined | false>,
  ms = 10_000,
): Promise<Result> {
  const deadline = Date.now() + ms;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`did not come true in ${ms} ms: ${ask.toString()}`);
    await sleep(20);
  }
}
