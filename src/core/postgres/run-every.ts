import type { BackgroundWorkName, Observe } from '../domain/observed.ts';

/**
 * Does `work` every so often, never twice at a time; one that fails is told, and the next round comes all the same.
 * @param firstMs until the first round; as long as between two of them unless it says otherwise
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
