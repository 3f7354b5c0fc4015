import type { Log } from '../core/domain/log.ts';

/** A component that starts and stops with the process. */
export type Part = {
  name: string;
  /** Resolves when the part works and the next one may start. A rejection ends the start. */
  start?(stopping: AbortSignal): unknown;
  /** Resolves when the part has stopped and the previous one may stop. Also called if it was never started. */
  stop?(): unknown;
};

export type ProcessLifecycle = {
  /** Starts the parts one after the other, until all have started or the stop begins. */
  start(): Promise<void>;
  /** Stops the parts in reverse order. Waits first for a part that is still starting. */
  stop(): Promise<void>;
};

/** Starts parts in list order and stops them in reverse: a part may use earlier parts while it stops. */
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
          log.error({ err: error, part: part.name }, 'a part of the process failed to stop');
        }
      }
    },
  };
}
