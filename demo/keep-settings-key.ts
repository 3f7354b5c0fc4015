import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Makes the key at the first run and keeps it beside the data that it encrypts. @returns `SETTINGS_KEY` */
export function keepSettingsKey(dir: string): string {
  const file = join(dir, 'settings-key');
  try {
    writeFileSync(file, `demo:${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return readFileSync(file, 'utf8').trim();
}
