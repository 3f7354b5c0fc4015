import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../../world/network/free-port.ts';
import { END_WITH_PARENT } from './end-with-parent.ts';
import { imageEnvironment } from './image-environment.ts';
import { SETTINGS_KEY } from './prepare-bench-database.ts';
import { ALLOW_PRIVATE_HOSTS } from '../../../world/network/allowed-loopback.ts';

export type Service = {
  url: string;
  pid: number;
  /** Milliseconds from the spawn until /healthz answered 200, and until /readyz answered 200. */
  startMs: number;
  readyMs: number;
  stop(): Promise<void>;
};

const POLL_MS = 2;
const START_WITHIN_MS = 20_000;
const STOP_WITHIN_MS = 10_000;

/**
 * Starts the service and waits until it is ready. Its log is discarded, because reading it would use a processor and
 * fill the harness's memory. The service ends when we end.
 * @param main the compiled file
 * @param env additional variables. At the default addresses, there is no ordering platform and no Pub/Sub
 */
export async function startService(main: string, env: Record<string, string>): Promise<Service> {
  const port = await freePort();
  const began = performance.now();
  const child = spawn(process.execPath, [...END_WITH_PARENT, main], {
    env: {
      PATH: process.env['PATH'],
      ...imageEnvironment(),
      METADATA_SERVER_DETECTION: 'none',
      HOST: '127.0.0.1',
      PORT: String(port),
      LOG_LEVEL: 'info',
      ORDER_API_URL: 'http://127.0.0.1:9/graphql',
      GOOGLE_CLOUD_PROJECT: 'bench',
      PUBSUB_EMULATOR_HOST: '127.0.0.1:9',
      PUSH_AUTH: 'off',
      SETTINGS_KEY,
      ALLOW_PRIVATE_HOSTS,
      DRAIN_DELAY_MS: '0',
      ...env,
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const ended = once(child, 'exit');
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
    await ended;
    clearTimeout(late);
  };
  const answers = async (path: string): Promise<number> => {
    while ((await statusOf(port, path)) !== 200) {
      if (child.exitCode !== null) throw new Error(`the service ended with ${child.exitCode}`);
      if (performance.now() - began > START_WITHIN_MS) throw new Error(`${path} was never 200`);
      await sleep(POLL_MS);
    }
    return performance.now() - began;
  };
  try {
    const startMs = await answers('/healthz');
    const readyMs = await answers('/readyz');
    return { url: `http://127.0.0.1:${port}`, pid: child.pid ?? Number.NaN, startMs, readyMs, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Does not use `fetch`, because its first call takes longer than the measured start. */
function statusOf(port: number, path: string): Promise<number | undefined> {
  return new Promise((answered) => {
    get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      response.resume();
      answered(response.statusCode);
    }).on('error', () => answered(undefined));
  });
}
