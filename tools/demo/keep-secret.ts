import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Makes a secret in the first run and stores it with the data for later runs. @returns the secret */
export function keepSecret(dir: string, name: string, make: () => string): string {
  const file = join(dir, name);
  try {
    writeFileSync(file, `${make()}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return readFileSync(file, 'utf8').trim();
}
