import { readFileSync, readdirSync } from 'node:fs';

/** Processor time of a process so far, by all its threads; NaN if there is no /proc, or no such process. */
export function processorMs(pid: number): number {
  try {
    // By thread it is in nanoseconds; by process in hundredths of a second, too coarse for one that rests.
    const spent = readdirSync(`/proc/${pid}/task`).map((thread) =>
      Number.parseInt(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'), 10),
    );
    return spent.reduce((sum, each) => sum + each, 0) / 1_000_000;
  } catch {
    return Number.NaN;
  }
}

/** The same of all processes of a Postgres, also of those that have ended. */
export function postgresMs(postmaster: number): number {
  try {
    const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').trim().split(' ');
    // The name is in parentheses and may hold blanks. Ticks are hundredths of a second on every Linux we know.
    const [, fields = ''] = readFileSync(`/proc/${postmaster}/stat`, 'utf8').split(') ');
    const [user, system] = fields.split(' ').slice(13, 15);
    const ended = (Number(user) + Number(system)) * 10;
    // One of them may just have ended.
    return children.reduce((sum, pid) => sum + (processorMs(Number(pid)) || 0), processorMs(postmaster) + ended);
  } catch {
    return Number.NaN;
  }
}
