import { readFileSync } from 'node:fs';

/** For the memory that they take, some 15 kB each while they are idle. */
const MOST = 4_096;
/** Where the system does not say. */
const FILES = 1_024;

/**
 * Tells how many connections a process may have accepted at once: half of the files that it may open. The other half is
 * for its own: Postgres, 416 calls to POS systems and the platform, Pub/Sub, the console's files.
 */
export function mostConnections(): number {
  return Math.min(MOST, Math.floor(fileLimit() / 2));
}

/** The soft limit, which Node has raised to the hard one. https://man7.org/linux/man-pages/man5/proc_pid_limits.5.html */
function fileLimit(): number {
  try {
    const limit = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return limit === 'unlimited' ? Infinity : Number(limit ?? FILES);
  } catch {
    return FILES;
  }
}
