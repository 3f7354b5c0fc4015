import { readFileSync } from 'node:fs';

/** For the memory that they take, some 15 kB each while they are idle. */
const MOST = 4_096;
/** Files for its own: Postgres, 416 calls to POS systems and the platform, Pub/Sub, the console's files. */
const OWN = 2_048;
/** Of the connections, those that streams leave to other doors where there are not files for all. */
const OTHERS = 2_048;
/** Where the system does not say. */
const FILES = 1_024;

/**
 * Tells how many connections a process may have accepted at once, and how many of them may be members' streams, by the
 * files that it may open: half of few are for its own, and half of few connections for other doors.
 * @param streams the most that are wanted
 */
export function mostConnections(streams = 0): { connections: number; streams: number } {
  const files = fileLimit();
  const connections = Math.min(MOST + streams, files - Math.min(OWN, Math.ceil(files / 2)));
  return { connections, streams: Math.min(streams, connections - Math.min(OTHERS, Math.ceil(connections / 2))) };
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
