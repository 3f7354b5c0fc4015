import type { Log } from './log.ts';

/**
 * Does `work` every so often, never twice at a time; an error is logged, and the next round comes all the same.
 * @param firstMs until the first round; as long as between two of them unless it says otherwise
 */
export function every(
  milliseconds: number,
  work: () => Promise<unknown>,
  log: Pick<Log, 'warn'>,
  name: string,
  firstMs = milliseconds,
): { stop(): Promise<void> } {
  let running: Promise<void> | undefined;
  const round = (): void => {
    running ??= work()
      .then(() => {})
      .catch((error: unknown) => log.warn({ err: error }, `${name} failed; comes again`))
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
