import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';

/**
 * A shell that waits for the end of our pipe, which comes even if this process is killed with -9, and then ends the
 * other process. It waits only for a while: if nobody reaps orphans, a dead process keeps its id.
 */
const WATCHDOG = `
  read -r _
  kill -"$2" "$1" 2>/dev/null
  for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$1" 2>/dev/null || break; sleep 0.2; done
  kill -KILL "$1" 2>/dev/null
  if [ -n "$3" ]; then rm -rf -- "$3"; fi
`;

/**
 * Ends a process that we started when we end, however we end.
 * @param about.signal what it is told first
 * @param about.remove a directory that goes with it
 * @returns the watchdog, which ends with the process
 */
export function endWithUs(
  child: ChildProcess,
  about: { signal?: 'TERM' | 'QUIT'; remove?: string | undefined; options?: SpawnOptions } = {},
): ChildProcess {
  const { signal = 'TERM', remove = '', options } = about;
  const args = ['-c', WATCHDOG, 'watchdog', String(child.pid), signal, remove];
  const watchdog = spawn('/bin/sh', args, {
    detached: true,
    ...options,
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watchdog.on('error', () => undefined); // no shell: then the process is left behind after a kill -9, and only then
  watchdog.unref();
  child.once('exit', () => watchdog.kill('SIGKILL'));
  return watchdog;
}
