import { accessSync, constants, readdirSync } from 'node:fs';
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

const DEBIANS_POSTGRES = '/usr/lib/postgresql';

/** The folders of programs of each Postgres that Debian has brought, oldest first. @throws as `needsTool` */
export function needsPostgres(): string[] {
  needsTool('pg_createcluster', 'postgresql');
  const versions = readdirSync(DEBIANS_POSTGRES).toSorted((a, b) => Number(a) - Number(b));
  return versions.map((version) => join(DEBIANS_POSTGRES, version, 'bin'));
}
