import { readFileSync, readdirSync } from 'node:fs';

/** The processor time of all threads of a process so far; NaN if there is no /proc, or no such process. */
export function processorMs(pid: number): number {
  try {
    // Per thread, the time is in nanoseconds. Per process, it is in 1/100 s, which is too coarse for an idle process.
    const spent = readdirSync(`/proc/${pid}/task`).map((thread) =>
      Number.parseInt(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'), 10),
    );
    return spent.reduce((sum, each) => sum + each, 0) / 1_000_000;
  } catch {
    return Number.NaN;
  }
}

/** The processor time of all processes of a Postgres so far, including ended processes. */
export function postgresMs(postmaster: number): number {
  try {
    const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').trim().split(' ');
    // The name is in parentheses and may contain spaces. Ticks are hundredths of a second on every Linux that we know.
    const [, fields = ''] = readFileSync(`/proc/${postmaster}/stat`, 'utf8').split(') ');
    const [user, system] = fields.split(' ').slice(13, 15);
    const ended = (Number(user) + Number(system)) * 10;
    // A child may just have ended. Its time is then NaN and counts as 0.
    return children.reduce((sum, pid) => sum + (processorMs(Number(pid)) || 0), processorMs(postmaster) + ended);
  } catch {
    return Number.NaN;
  }
}
