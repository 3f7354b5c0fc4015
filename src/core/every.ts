import type { Log } from './log.ts';

/** Does `work` every so often, never twice at a time; an error is logged, and the next round comes all the same. */
export function every(
  milliseconds: number,
  work: () => Promise<unknown>,
  log: Pick<Log, 'warn'>,
  name: string,
): { stop(): Promise<void> } {
  let running: Promise<void> | undefined;
  const timer = setInterval(() => {
    running ??= work()
      .then(() => {})
      .catch((error: unknown) => log.warn({ err: error }, `${name} failed; comes again`))
      .finally(() => {
        running = undefined;
      });
  }, milliseconds);
  return {
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
