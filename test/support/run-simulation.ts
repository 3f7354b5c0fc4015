import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';

/** Simulates in a thread of its own, because time and chance are replaced there. */
export async function runSimulation(
  about: string,
  faults: readonly string[] = [],
): Promise<{ code: number; said: string }> {
  const thread = new Worker(new URL('../../tools/simulate/simulate.ts', import.meta.url), {
    argv: [...about.split(' '), ...faults.flatMap((id) => ['--fault', id])],
    execArgv: [],
    stdout: true,
  });
  const [[code], said] = await Promise.all([once(thread, 'exit') as Promise<[number]>, text(thread.stdout)]);
  return { code, said };
}
