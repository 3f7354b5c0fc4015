import type { Log } from '../core/domain/log.ts';
import type { WorkLoop } from '../core/postgres/loops.ts';

/** Work that repeats once it is started. Its part's `stop` ends it. */
export type Loop = Pick<WorkLoop, 'start'> & {
  /** Does one turn of the work, and resolves when it is done. */
  round(): Promise<unknown>;
};

/** A component that starts and stops with the process. */
export type Part = {
  name: string;
  /** Resolves when the part works. Then the next part starts. A rejection ends the start of the process. */
  start?(stopping: AbortSignal): unknown;
  /** What runs in the part after its start, by name. */
  loops?: Record<string, Loop>;
  /** Resolves when the part has stopped. Then the previous part stops. Also called if the part was never started. */
  stop?(): unknown;
};

export type ProcessLifecycle = {
  /** Starts the parts one after the other, until all have started or `stop` is called. */
  start(): Promise<void>;
  /** Stops the parts in reverse order. A part that is still starting is stopped after its start. */
  stop(): Promise<void>;
};

/**
 * Starts parts in the order of the list and stops them in reverse, so a part may use earlier parts while it stops.
 * @param runs whether a loop is started, by its name
 */
export function processLifecycle(
  parts: readonly Part[],
  log: Pick<Log, 'error'>,
  runs: (loop: string) => boolean = () => true,
): ProcessLifecycle {
  const stopping = new AbortController();
  const startPart = async ({ start, loops = {} }: Part): Promise<void> => {
    await start?.(stopping.signal);
    for (const [name, loop] of Object.entries(loops)) if (runs(name)) loop.start();
  };
  let starting: { part: Part; done: Promise<unknown> } | undefined;

  return {
    async start() {
      for (const part of parts) {
        if (stopping.signal.aborted) return;
        const done = startPart(part);
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
