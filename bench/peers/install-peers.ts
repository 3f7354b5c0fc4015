import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const HERE = fileURLToPath(new URL('.', import.meta.url));

/** Installs the peers' packages here, unless they are. Nothing of them comes with the project. */
export function installPeers(say: (line: string) => void): void {
  // npm writes it last, so an installation that was interrupted has none, and one of other versions an older one.
  const installed = statSync(`${HERE}node_modules/.package-lock.json`, { throwIfNoEntry: false });
  if (installed !== undefined && installed.mtimeMs >= statSync(`${HERE}package-lock.json`).mtimeMs) return;
  say('npm ci --prefix bench/peers');
  const words = ['ci', '--prefix', HERE, '--ignore-scripts', '--no-audit', '--no-fund'];
  execFileSync('npm', words, { stdio: ['ignore', 'ignore', 'inherit'] });
}
