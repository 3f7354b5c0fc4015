import type { Log } from '../core/domain/log.ts';

/** Something that starts and stops with the process. */
export type Part = {
  name: string;
  /** Resolves when the part works and the next one may start. A rejection ends the start. */
  start?(stopping: AbortSignal): unknown;
  /** Resolves when the part has stopped and the one before it may stop. Called as well if it was never started. */
  stop?(): unknown;
};

export type ProcessLifecycle = {
  /** Starts the parts one after the other, until all have started or the stop begins. */
  start(): Promise<void>;
  /** Stops the parts in reverse order. A part that is still starting is awaited first. */
  stop(): Promise<void>;
};

/** Starts parts in the order of the list and stops them in reverse: a part may use those before it while it stops. */
export function processLifecycle(parts: readonly Part[], log: Pick<Log, 'error'>): ProcessLifecycle {
  const stopping = new AbortController();
  let starting: { part: Part; done: Promise<unknown> } | undefined;

  return {
    async start() {
      for (const part of parts) {
        if (stopping.signal.aborted) return;
        const done = (async () => part.start?.(stopping.signal))();
        starting = { part, done };
        await done;
      }
    },
    async stop() {
      stopping.abort();
      for (const part of parts.toReversed()) {
        if (starting?.part === part) await starting.done.catch(() => {});
        try {
          await part.stop?.();
        } catch (error) {
          log.error({ err: error, part: part.name }, 'a part did not stop in order');
        }
      }
    },
  };
}
