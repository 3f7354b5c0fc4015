import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { relative } from 'node:path';

/** Runs `npm ci` in a folder with a lock file of its own, if needed. The project itself does not depend on its packages. */
export function installApart(folder: string, say: (line: string) => void = () => {}): void {
  // npm writes this file last. After an interrupted installation it is missing, and for other versions it is older.
  const installed = statSync(`${folder}/node_modules/.package-lock.json`, { throwIfNoEntry: false });
  if (installed !== undefined && installed.mtimeMs >= statSync(`${folder}/package-lock.json`).mtimeMs) return;
  say(`npm ci --prefix ${relative(process.cwd(), folder)}`);
  const words = ['ci', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund'];
  execFileSync('npm', words, { stdio: ['ignore', 'ignore', 'inherit'] });
}
