import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../test/support/free-port.ts';
import { spawnMain } from '../test/support/run-main.ts';
import { chance } from './chance.ts';
import type { History } from './history.ts';

export type Instances = {
  /** URLs of running processes, ready or not. */
  urls(): readonly string[];
  /** Resolves when all are ready, or after a minute. */
  untilReady(): Promise<void>;
  /** Kills one by kill -9, and starts another after a moment. */
  kill(nth: number): Promise<void>;
  /** Starts a new one, then ends the old one by SIGTERM; it has to exit with 0. */
  roll(nth: number): Promise<void>;
  freeze(nth: number, seconds: number): Promise<void>;
  /** Processes that ended by themselves or wrongly. None if all is well. */
  readonly misbehaved: readonly string[];
  /** All log output. */
  log(): string;
  /** Stops reading the logs of all processes, those that are started meanwhile included, or goes on. */
  readLogs(isRead: boolean): void;
  stop(): Promise<void>;
};

type Instance = ReturnType<typeof spawnMain> & { name: string; url: string; leaving: boolean };

/** That a process may open: the least that docs/deploy.md asks for. */
export const FILES = 1_024;
const CLOCK = new URL('../test/support/shift-clock.ts', import.meta.url).href;
const TEN_MINUTES_MS = 600_000;
/** Time for a replacement to be ready. A start itself waits for Postgres without limit. */
const READY_WITHIN_MS = 5_000;
/** The same for all at once. */
const ALL_READY_WITHIN_MS = 60_000;
/** Time to exit: Cloud Run's, the shortest of a platform, for which DRAIN_FINISH_MS is made by default. */
const EXIT_WITHIN_MS = 10_000;

/** Runs processes of the service, each of which may be replaced at any time. */
export async function runInstances(about: {
  env: Record<string, string>;
  seed: number;
  /** Every other process has a clock that is ten minutes off. */
  clocks: boolean;
  history: History;
  /** How many there are. */
  places: number;
}): Promise<Instances> {
  const { env, seed, clocks, history, places: count } = about;
  const misbehaved: string[] = [];
  const all: Instance[] = [];
  const places: (Instance | undefined)[] = [];

  let isRead = true;
  let started = 0;
  const begin = async (place: number): Promise<Instance> => {
    started += 1;
    const nth = started;
    const offMs = clocks && nth % 2 === 0 ? TEN_MINUTES_MS * (chance(seed, 'clock', nth) < 0.5 ? -1 : 1) : 0;
    const port = await freePort();
    const off = offMs === 0 ? {} : { NODE_OPTIONS: `--import ${CLOCK}`, CLOCK_OFF_MS: String(offMs) };
    const instance: Instance = {
      ...spawnMain({ ...env, ...off, PORT: String(port) }, FILES),
      name: `process ${nth}`,
      url: `http://127.0.0.1:${port}`,
      leaving: false,
    };
    if (!isRead) instance.child.stdout?.pause();
    // Its last words are always read, or it would never count as closed.
    instance.child.once('exit', () => instance.child.stdout?.resume());
    all.push(instance);
    places[place] = instance;
    history.note('process started', { process: instance.name, offMs });
    void instance.exited.then((code) => {
      history.note('process ended', { process: instance.name, code });
      if (!instance.leaving) misbehaved.push(`${instance.name} ended by itself with ${code}: ${lastWords(instance)}`);
    });
    return instance;
  };

  const leave = async (instance: Instance, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> => {
    instance.leaving = true;
    instance.child.kill(signal);
    if (signal === 'SIGKILL') return void (await instance.exited);
    const code = await Promise.race([instance.exited, sleep(EXIT_WITHIN_MS, 'late', { ref: false })]);
    if (code === 0) return undefined;
    misbehaved.push(`${instance.name} was told to end, and ${code === 'late' ? 'did not' : `ended with ${code}`}`);
    instance.child.kill('SIGKILL');
    await instance.exited;
  };

  const ready = async ({ url }: Instance, withinMs: number): Promise<void> => {
    const deadline = performance.now() + withinMs;
    while (performance.now() < deadline) {
      if (
        await fetch(`${url}/readyz`).then(
          (response) => response.ok,
          () => false,
        )
      )
        return;
      await sleep(100);
    }
  };

  const untilReady = async (): Promise<void> => {
    const running = places.filter((instance) => instance !== undefined);
    await Promise.all(running.map((instance) => ready(instance, ALL_READY_WITHIN_MS)));
  };

  await Promise.all(Array.from({ length: count }, (_, place) => begin(place)));
  await untilReady();

  return {
    misbehaved,
    untilReady,
    // A process that is ending gets requests until it says that it is not ready.
    urls: () => all.flatMap(({ child, url }) => (child.exitCode === null && child.signalCode === null ? url : [])),
    log: () => all.map((instance) => instance.output()).join(''),
    readLogs(read) {
      isRead = read;
      for (const instance of places) {
        if (isRead) instance?.child.stdout?.resume();
        else instance?.child.stdout?.pause();
      }
    },
    async kill(nth) {
      const place = nth % count;
      const instance = places[place];
      if (instance !== undefined) await leave(instance, 'SIGKILL');
      places[place] = undefined;
      await sleep(1_000 * chance(seed, 'away', nth));
      await begin(place);
    },
    async roll(nth) {
      const place = nth % count;
      const old = places[place];
      await ready(await begin(place), READY_WITHIN_MS);
      if (old !== undefined) await leave(old, 'SIGTERM');
    },
    async freeze(nth, seconds) {
      const instance = places[nth % count];
      instance?.child.kill('SIGSTOP');
      await sleep(seconds * 1_000);
      instance?.child.kill('SIGCONT');
    },
    async stop() {
      const running = places.flatMap((instance) => instance ?? []);
      await Promise.all(running.map((instance) => leave(instance, 'SIGTERM')));
    },
  };
}

/** The end of its output that is not log lines: a stack, most likely. */
function lastWords({ output }: Instance): string {
  const lines = output()
    .split('\n')
    .filter((line) => !line.startsWith('{'));
  return lines.join('\n').trim().slice(-2_000);
}
