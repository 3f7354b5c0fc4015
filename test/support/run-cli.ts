import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Ended } from './run-program.ts';

export const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

let running: { child: ChildProcess; exited: Promise<unknown> } | undefined;
let last: Promise<unknown> = Promise.resolve();

/**
 * The command line as an operator runs it, with this environment alone. One process runs one command after the other:
 * its start takes as long as ten of them. Where two must run at once, or the process itself is what is looked at,
 * `runToEnd` runs `CLI`.
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

/** It ends with us, whose channel it listens to. */
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
