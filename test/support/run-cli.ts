import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Ended } from './run-program.ts';

export const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

let running: { child: ChildProcess; exited: Promise<unknown> } | undefined;
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs the command line with this environment only. One process runs one command after the other: its start takes as
 * long as ten of them. To run two at once, or to test the process itself, use `runToEnd` with `CLI`.
 */
export function runCli(env: Record<string, string>, args: readonly string[], input = ''): Promise<Ended> {
  const ended = last.then(async () => {
    running ??= start();
    const { child, exited } = running;
    child.send({ env, args, input });
    const [answer] = (await Promise.race([once(child, 'message'), exited])) as [Ended | undefined];
    if (answer === undefined) throw new Error(`the process ended at ${args.join(' ')}`);
    return answer;
  });
  last = ended.catch(() => {});
  return ended;
}

/** Starts the process. It listens to our channel, so it ends with us. */
function start(): NonNullable<typeof running> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = fork(fileURLToPath(new URL('./cli-child.ts', import.meta.url)), {
    env: { PATH, NODE_COMPILE_CACHE },
    execArgv: [],
  });
  const exited = new Promise<[undefined]>((ended) => {
    child.once('exit', () => {
      running = undefined;
      ended([undefined]);
    });
  });
  return { child, exited };
}
