import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CONFIG_NAMES } from '../../src/config/config.ts';

export type Service = {
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
  /** The URL of the port for operators. */
  operatorUrl: string;
  pid: number;
  /** Resolves with the reason when the process has ended. */
  ended: Promise<string>;
  /** Stops as a deploy would: SIGTERM, then a drain. Safe to repeat. */
  stop(): Promise<void>;
};

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const END_WITH_DEMO = new URL('./end-with-demo.ts', import.meta.url).href;
const READY_WITHIN_MS = 120_000;
const STOP_WITHIN_MS = 10_000;
const TAIL = 2_000;
/** The service listens at any two free ports. */
export const WHERE = { HOST: '127.0.0.1', PORT: '0', OPERATOR_PORT: '0' };

export type RunService = {
  env: Record<string, string>;
  /** The file to which the log is appended. */
  logFile: string;
  signal: AbortSignal;
};

/** Runs the service as in production, in a process of its own. Resolves when it is ready. */
export async function runService(about: RunService): Promise<Service> {
  const child = spawn(process.execPath, ['--import', END_WITH_DEMO, MAIN], {
    cwd: ROOT,
    env: { ...withoutConfig(process.env), ...WHERE, DRAIN_DELAY_MS: '0', ...about.env },
    // The service gets its own process group, so that a Ctrl-C reaches only the demo, which ends all parts in order.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const ended = once(child, 'close').then(
    ([code, signal]: unknown[]) => `ended with ${String(code ?? signal)}`,
    (error: unknown) => `could not be started: ${String(error)}`,
  );
  const urls = listening(child);
  const tail = writeLog(child, about.logFile);
  const stop = (): Promise<void> => end(child, ended);

  const late = AbortSignal.timeout(READY_WITHIN_MS);
  const ready = urls.then(({ url }) => becomesReady(url, AbortSignal.any([about.signal, late])));
  const failed = ended.then((how) => Promise.reject(new Error(`the service ${how}\n${tail()}`)));
  try {
    await Promise.race([ready, failed, aborted(about.signal), aborted(late)]);
  } catch (error) {
    await stop();
    if (error !== late.reason) throw error;
    throw new Error(`the service was not ready within ${READY_WITHIN_MS / 1000} s\n${tail()}`, { cause: error });
  } finally {
    failed.catch(() => {});
  }
  return { ...(await urls), pid: child.pid ?? 0, ended, stop };
}

/** Removes the user's own configuration of a service. */
function withoutConfig(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const ours = new Set<string>(CONFIG_NAMES);
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ours.has(name)));
}

/** Reads the ports from the service's log. */
function listening(child: ChildProcess): Promise<Pick<Service, 'url' | 'operatorUrl'>> {
  return new Promise((resolve) => {
    let log = '';
    const read = (text: string): void => {
      log += text;
      const url = /listening at (http:\/\/127\.0\.0\.1:\d+)/.exec(log)?.[1];
      const operatorUrl = /Operators are served at (http:\/\/127\.0\.0\.1:\d+)/.exec(log)?.[1];
      if (url === undefined || operatorUrl === undefined) return;
      child.stdout?.off('data', read);
      resolve({ url, operatorUrl });
    };
    child.stdout?.setEncoding('utf8').on('data', read);
  });
}

/** Writes the log to the file. @returns a function that gives the last lines for an error: of stderr, else of stdout */
function writeLog(child: ChildProcess, logFile: string): () => string {
  const file = createWriteStream(logFile, { flags: 'a' });
  const tail = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      file.write(text);
      tail[name] = (tail[name] + text).slice(-TAIL);
    });
  }
  child.once('close', () => file.end());
  return () => `${tail.stderr.trim() || tail.stdout.trim()}\nThe whole log is in ${logFile}`;
}

async function becomesReady(url: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const ready = await fetch(`${url}/readyz`, { signal }).then(
      async (response) => {
        await response.arrayBuffer();
        return response.ok;
      },
      () => false,
    );
    if (ready) return;
    await sleep(50);
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

async function end(child: ChildProcess, ended: Promise<string>): Promise<void> {
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
  await ended;
  clearTimeout(late);
}
