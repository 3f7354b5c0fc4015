import { fork } from 'node:child_process';
import { once } from 'node:events';
import { END_WITH_PARENT } from './end-with-parent.ts';

/** A program of the benchmark in its own process. It answers each message. */
export type Child = {
  ask<Answer>(message: object): Promise<Answer>;
  pid: number;
  stop(): Promise<void>;
};

/**
 * Starts a child. Its standard output is discarded, its standard error is ours. It ends when we end.
 * @param args its command-line arguments
 * @param env variables in addition to ours
 */
export function forkChild(file: string, args: readonly string[] = [], env: Record<string, string> = {}): Child {
  const child = fork(new URL(`../${file}`, import.meta.url), args, {
    execArgv: END_WITH_PARENT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  return {
    pid: child.pid ?? 0,
    async ask<Answer>(message: object) {
      const answered = once(child, 'message');
      child.send(message);
      const [answer] = await Promise.race([
        answered,
        exited.then(([code, signal]) => {
          throw new Error(`${file} ended with ${String(code ?? signal)}`);
        }),
      ]);
      return answer as Answer;
    },
    async stop() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}
