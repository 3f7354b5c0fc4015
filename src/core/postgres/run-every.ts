import type { BackgroundWorkName, Observe } from '../domain/observed.ts';

/**
 * Repeats `work` at an interval, never twice at a time. A failure is reported, and the next round still comes.
 * @param firstMs time until the first round; the interval by default
 */
export function runEvery(
  milliseconds: number,
  work: () => Promise<unknown>,
  observe: Observe,
  name: BackgroundWorkName,
  firstMs = milliseconds,
): { stop(): Promise<void> } {
  let running: Promise<void> | undefined;
  const round = (): void => {
    running ??= work()
      .then(
        () => observe({ what: 'background work', work: name, outcome: 'done' }),
        (error: unknown) => observe({ what: 'background work', work: name, outcome: 'failed', error }),
      )
      .finally(() => {
        running = undefined;
      });
  };
  let timer = setTimeout(() => {
    timer = setInterval(round, milliseconds);
    round();
  }, firstMs);
  return {
    async stop() {
      clearTimeout(timer);
      await running;
    },
  };
}
