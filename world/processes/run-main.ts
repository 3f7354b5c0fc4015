import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { endWithUs } from './end-with-us.ts';
import { until } from './until.ts';

export const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export type MainProcess = {
  url: string;
  /** The same one while OPERATOR_PORT is unset. */
  operatorUrl: string;
  child: ChildProcess;
  /** Standard output and error so far. */
  output: () => string;
  /** Resolves with its exit code, or the signal that ended it. */
  exited: Promise<number | string>;
};

/** Runs the service in a process of its own, so that it can be killed. Resolves when it is ready. It ends with us. */
export async function runMain(env: Record<string, string>, files?: number, file?: string): Promise<MainProcess> {
  const main = spawnMain({ ...env, PORT: '0' }, files, file);
  return { ...main, ...(await urlsOf(main)) };
}

/** Waits until it is ready. @returns where it listens, as it says in its log at the level `info` */
export async function urlsOf(
  { child, output }: Pick<MainProcess, 'child' | 'output'>,
  path = '/readyz',
): Promise<Pick<MainProcess, 'url' | 'operatorUrl'>> {
  return until(async () => {
    if (child.exitCode !== null) throw new Error(`the process ended: ${output()}`);
    const url = /Server listening at (http:[^"]+)/.exec(output())?.[1];
    if (url === undefined || !(await fetch(url + path)).ok) return undefined;
    return { url, operatorUrl: /Operators are served at (http:[^"]+)/.exec(output())?.[1] ?? url };
  });
}

/** @param files that it may open; by default as many as we */
export function spawnMain(
  env: Record<string, string>,
  files?: number,
  file = MAIN,
): Omit<MainProcess, 'url' | 'operatorUrl'> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const limit = files === undefined ? '' : `ulimit -n ${files} && `;
  const child = spawn('sh', ['-c', `${limit}exec "$0" "$@"`, process.execPath, '--enable-source-maps', file], {
    env: { PATH, NODE_COMPILE_CACHE, METADATA_SERVER_DETECTION: 'none', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  endWithUs(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const exited = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  return { child, output: () => output, exited };
}
