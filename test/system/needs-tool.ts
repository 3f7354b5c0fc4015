import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * Where a program is that npm cannot bring.
 * @param debianPackage what brings it
 * @throws when it is not on the PATH: a system test fails without its tool, and never skips
 */
export function needsTool(name: string, debianPackage: string): string {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // The next folder, then.
    }
  }
  throw new Error(`${name} is missing; on Debian: apt-get install ${debianPackage}`);
}
