import type { Log } from '../core/domain/log.ts';

/** A component that starts and stops with the process. */
export type Part = {
  name: string;
  /** Resolves when the part works. Then the next part starts. A rejection ends the start of the process. */
  start?(stopping: AbortSignal): unknown;
  /** Resolves when the part has stopped. Then the previous part stops. Also called if the part was never started. */
  stop?(): unknown;
};

export type ProcessLifecycle = {
  /** Starts the parts one after the other, until all have started or `stop` is called. */
  start(): Promise<void>;
  /** Stops the parts in reverse order. A part that is still starting is stopped after its start. */
  stop(): Promise<void>;
};

/** Starts parts in the order of the list and stops them in reverse, so a part may use earlier parts while it stops. */
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
