import { watch } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** An editor that saves everything writes for a moment. */
const QUIET_MS = 150;
/** Not what editors keep beside a file for themselves, such as `.app.ts.swp` and `app.ts~`. */
const SOURCE = /(?:^|\/)[\w-]+(?:\.\w+)+$/;

/**
 * Acts on each change below a folder, one at a time: what changes meanwhile is acted on once, afterwards.
 * @param act is given the file that changed last, from the folder; must not throw
 * @returns what ends it, after the act that is under way
 */
export function onChange(folder: string, act: (file: string) => Promise<void>): () => Promise<void> {
  let changed: string | undefined;
  let working: Promise<void> | undefined;
  const work = async (): Promise<void> => {
    while (changed !== undefined) {
      await sleep(QUIET_MS);
      const file = changed;
      changed = undefined;
      await act(file);
    }
    working = undefined;
  };
  const watcher = watch(folder, { recursive: true }, (_event, name) => {
    if (name === null || !SOURCE.test(name)) return;
    changed = name;
    working ??= work();
  });
  return async () => {
    watcher.close();
    await working;
  };
}
