import { watch } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** The action waits this long for more changes, because an editor needs a moment to save all files. */
const QUIET_MS = 150;
/** Names of source files. It matches no temporary file, such as `.app.ts.swp` and `app.ts~`, and no output of the action. */
const SOURCE = /(?:^|\/)[\w-]+(?:\.[\w-]+)*\.(?:[cm]?[jt]sx?|json|css|html|svg|graphql)$/;

/**
 * Runs an action after changes in a folder, never twice at once. Changes during a run cause one more run.
 * @param act gets the last changed file, relative to the folder; must not throw
 * @returns a function that stops watching and waits for the current run
 */
export function onChange(
  folder: string,
  act: (file: string) => Promise<void>,
  { recursive = true } = {},
): () => Promise<void> {
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
  const watcher = watch(folder, { recursive }, (_event, name) => {
    if (name === null || !SOURCE.test(name)) return;
    changed = name;
    working ??= work();
  });
  return async () => {
    watcher.close();
    await working;
  };
}
