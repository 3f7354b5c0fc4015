import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Ended } from './run-cli.ts';

/** For a process that runs one command after the other, as an operator would who never had to wait for its start. */
export type CliProcess = {
  run(env: Record<string, string>, args: readonly string[], input?: string): Promise<Ended>;
  /** Resolves when the process has ended by itself, which it does when no command left anything open. */
  stop(): Promise<void>;
};

export function startCliProcess(): CliProcess {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = fork(fileURLToPath(new URL('./cli-child.ts', import.meta.url)), {
    env: { PATH, NODE_COMPILE_CACHE },
    execArgv: [],
  });
  const exited = once(child, 'exit');
  let last: Promise<unknown> = Promise.resolve();
  return {
    run(env, args, input = '') {
      const ended = last.then(async () => {
        child.send({ env, args, input });
        return Promise.race([
          once(child, 'message').then(([answer]) => answer as Ended),
          exited.then(() => Promise.reject(new Error(`the process ended at ${args.join(' ')}`))),
        ]);
      });
      last = ended.catch(() => {});
      return ended;
    },
    async stop() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}
