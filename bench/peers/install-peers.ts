import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const HERE = fileURLToPath(new URL('.', import.meta.url));

/** Installs the peers' packages in this folder, if needed. The project itself does not depend on them. */
export function installPeers(say: (line: string) => void): void {
  // npm writes this file last. After an interrupted installation it is missing, and for other versions it is older.
  const installed = statSync(`${HERE}node_modules/.package-lock.json`, { throwIfNoEntry: false });
  if (installed !== undefined && installed.mtimeMs >= statSync(`${HERE}package-lock.json`).mtimeMs) return;
  say('npm ci --prefix bench/peers');
  const words = ['ci', '--prefix', HERE, '--ignore-scripts', '--no-audit', '--no-fund'];
  execFileSync('npm', words, { stdio: ['ignore', 'ignore', 'inherit'] });
}
