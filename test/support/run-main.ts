import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePort } from './free-port.ts';
import { until } from './until.ts';

export const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

export type MainProcess = {
  url: string;
  child: ChildProcess;
  /** Standard output and error so far. */
  output: () => string;
  /** Resolves with its exit code, or the signal that ended it. */
  exited: Promise<number | string>;
};

/** Runs the service in a process of its own, so that it can be killed. Resolves when it is ready. */
export async function runMain(env: Record<string, string>, files?: number): Promise<MainProcess> {
  const port = await freePort();
  const main = spawnMain({ ...env, PORT: String(port) }, files);
  const url = `http://127.0.0.1:${port}`;
  await until(() =>
    fetch(`${url}/readyz`).then(
      (response) => response.status === 200,
      () => {
        if (main.child.exitCode !== null) throw new Error(`the process ended: ${main.output()}`);
        return false;
      },
    ),
  );
  return { ...main, url };
}

/** @param files that it may open; by default as many as we */
export function spawnMain(env: Record<string, string>, files?: number): Omit<MainProcess, 'url'> {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const limit = files === undefined ? '' : `ulimit -n ${files} && `;
  const child = spawn('sh', ['-c', `${limit}exec "$0" "$@"`, process.execPath, MAIN], {
    env: { PATH, NODE_COMPILE_CACHE, METADATA_SERVER_DETECTION: 'none', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const exited = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  return { child, output: () => output, exited };
}
