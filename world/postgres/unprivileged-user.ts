import { readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';

/** The user for a program that refuses to run as root. */
export type UnprivilegedUser = { name: string; uid: number; gid: number };

const CANDIDATES = ['postgres', 'node', 'nobody'];

/**
 * Finds the user to run as, or `undefined` if this process is not root and need not change. The user has to be in the
 * password file: Postgres looks its own user up there and stops without one.
 */
export function unprivilegedUser(): UnprivilegedUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const entries = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  for (const name of CANDIDATES) {
    const entry = entries.find(([candidate]) => candidate === name);
    if (entry !== undefined) return { name, uid: Number(entry[2]), gid: Number(entry[3]) };
  }
  throw new Error(
    `running as root, and /etc/passwd has none of these users to run Postgres as: ${CANDIDATES.join(', ')}`,
  );
}

/** True if this user can enter a directory. A checkout below root's own home fails here. */
export function canEnter(directory: string, user: UnprivilegedUser): boolean {
  const { mode, uid, gid } = statSync(directory);
  const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
  if ((mode & bit) === 0) return false;
  const parent = dirname(directory);
  return parent === directory || canEnter(parent, user);
}

/** A directory for temporary files that the user of Postgres can enter as well. */
export function sharedTmpdir(user: UnprivilegedUser | undefined): string {
  return user === undefined || canEnter(tmpdir(), user) ? tmpdir() : '/tmp';
}
