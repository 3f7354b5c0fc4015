import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../world/network/free-port.ts';
import { spawnMain } from '../../world/processes/run-main.ts';
import { chance, pick } from './chance.ts';
import type { History } from './history.ts';

export type Instances = {
  /** URLs of running processes, ready or not. */
  urls(): readonly string[];
  /** Resolves when all are ready, or after a minute. */
  untilReady(): Promise<void>;
  /** Kills a process with SIGKILL, and starts another of the same version after up to a second. */
  kill(nth: number): Promise<void>;
  /** Kills any of the running processes, also one that drains. Resolves when what replaces it is ready. */
  killAny(by: number): Promise<void>;
  /**
   * Starts a new process, then ends the old one with SIGTERM. The old one must exit with 0.
   * @param program the number of the program that the new one runs; by default the same as before. Then the old one
   *   waits for up to a minute until the new one is ready
   */
  roll(nth: number, program?: number): Promise<void>;
  freeze(nth: number, seconds: number): Promise<void>;
  /** A sentence for each process that ended unexpectedly, or not as it should. Empty if all is well. */
  readonly misbehaved: readonly string[];
  /** All log output. */
  log(): string;
  /** Stops or resumes reading the logs of all processes, including processes that are started later. */
  readLogs(isRead: boolean): void;
  /** Stops all processes. */
  stop(): Promise<void>;
  /** Starts them again after `stop`, and waits until they are ready. */
  start(): Promise<void>;
};

/** A version of the service. */
export type Program = { main: string; env: Record<string, string> };

type Instance = ReturnType<typeof spawnMain> & {
  name: string;
  url: string;
  leaving: boolean;
  killed: boolean;
  /** Whose place it took. */
  before: Instance | undefined;
};

/** The limit of open files of each process: the smallest that docs/deploy.md allows. */
export const FILES = 1_024;
const CLOCK = new URL('../../world/processes/shift-clock.ts', import.meta.url).href;
const TEN_MINUTES_MS = 600_000;
/** Time to wait until a replacement is ready. It may take longer, because a start waits for Postgres without limit. */
const READY_WITHIN_MS = 5_000;
/** Time to wait until all processes are ready. */
const ALL_READY_WITHIN_MS = 60_000;
/** Time to exit. Cloud Run gives the least of all platforms: 10 s. The default of DRAIN_FINISH_MS fits into it. */
const EXIT_WITHIN_MS = 10_000;

type Options = {
  /** All processes begin with the first one. */
  programs: readonly Program[];
  seed: number;
  /** True if the clock of every other process is ten minutes ahead or behind. */
  clocks: boolean;
  history: History;
  /** The number of processes. */
  places: number;
};

/** The processes of a run. */
type Fleet = {
  readonly options: Options;
  readonly misbehaved: string[];
  /** All that were started. */
  readonly all: Instance[];
  /** Those that run now. */
  readonly places: (Instance | undefined)[];
  /** The program of each place. */
  readonly programOf: number[];
  /** True if what they write is read. */
  isRead: boolean;
  /** How many were started. */
  started: number;
};

/** Runs processes of the service, each of which may be replaced at any time. */
export async function runInstances(options: Options): Promise<Instances> {
  const { seed, places: count } = options;
  const fleet: Fleet = {
    options,
    misbehaved: [],
    all: [],
    places: [],
    programOf: Array.from({ length: count }, () => 0),
    isRead: true,
    started: 0,
  };
  const { misbehaved, all, places, programOf } = fleet;
  await start(fleet);

  return {
    start: () => start(fleet),
    misbehaved,
    untilReady: () => untilReady(fleet),
    // A process that is ending still gets requests until the load balancer sees that it is not ready.
    urls: () => all.flatMap(({ child, url }) => (child.exitCode === null && child.signalCode === null ? url : [])),
    log: () => all.map((instance) => instance.output()).join(''),
    readLogs(read) {
      fleet.isRead = read;
      for (const instance of places) {
        if (read) instance?.child.stdout?.resume();
        else instance?.child.stdout?.pause();
      }
    },
    async kill(nth) {
      await kill(fleet, nth % count, 1_000 * chance(seed, 'away', nth));
    },
    async killAny(by) {
      const instance = pick(
        all.filter(({ child }) => child.exitCode === null && child.signalCode === null),
        by,
      );
      const place = places.indexOf(instance);
      if (place < 0) return leave(fleet, instance, 'SIGKILL');
      await kill(fleet, place, 1_000 * by);
      await untilReady(fleet);
    },
    async roll(nth, program) {
      const place = nth % count;
      if (program !== undefined) programOf[place] = program;
      const begun = await begin(fleet, place);
      await ready(begun, program === undefined ? READY_WITHIN_MS : ALL_READY_WITHIN_MS);
      if (begun.before !== undefined) await leave(fleet, begun.before, 'SIGTERM');
    },
    async freeze(nth, seconds) {
      const instance = places[nth % count];
      instance?.child.kill('SIGSTOP');
      await sleep(seconds * 1_000);
      instance?.child.kill('SIGCONT');
    },
    async stop() {
      const running = places.flatMap((instance) => instance ?? []);
      await Promise.all(running.map((instance) => leave(fleet, instance, 'SIGTERM')));
    },
  };
}

const begin = async (fleet: Fleet, place: number): Promise<Instance> => {
  fleet.started += 1;
  const nth = fleet.started;
  const offMs =
    fleet.options.clocks && nth % 2 === 0
      ? TEN_MINUTES_MS * (chance(fleet.options.seed, 'clock', nth) < 0.5 ? -1 : 1)
      : 0;
  const port = await freePort();
  const program = fleet.programOf[place] ?? 0;
  const { main, env } = fleet.options.programs[program] ?? {};
  const off = offMs === 0 ? {} : { NODE_OPTIONS: `--import ${CLOCK}`, CLOCK_OFF_MS: String(offMs) };
  const instance: Instance = {
    ...spawnMain({ ...env, ...off, PORT: String(port) }, FILES, main),
    name: `process ${nth}`,
    url: `http://127.0.0.1:${port}`,
    leaving: false,
    killed: false,
    before: fleet.places[place],
  };
  if (!fleet.isRead) instance.child.stdout?.pause();
  // The rest of its output is always read: otherwise the stream would never close.
  instance.child.once('exit', () => instance.child.stdout?.resume());
  fleet.all.push(instance);
  fleet.places[place] = instance;
  fleet.options.history.note('process started', { process: instance.name, offMs, program });
  void instance.exited.then((code) => {
    fleet.options.history.note('process ended', { process: instance.name, code });
    if (!instance.leaving)
      fleet.misbehaved.push(`${instance.name} ended on its own with ${code}: ${lastWords(instance)}`);
  });
  return instance;
};

const leave = async (fleet: Fleet, instance: Instance, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> => {
  instance.leaving = true;
  instance.killed ||= signal === 'SIGKILL';
  instance.child.kill(signal);
  if (signal === 'SIGKILL') return void (await instance.exited);
  const code = await Promise.race([instance.exited, sleep(EXIT_WITHIN_MS, 'late', { ref: false })]);
  if (code === 0 || instance.killed) return undefined;
  fleet.misbehaved.push(`${instance.name} got SIGTERM, and ${code === 'late' ? 'did not end' : `ended with ${code}`}`);
  instance.child.kill('SIGKILL');
  await instance.exited;
};

const ready = async ({ url, child }: Instance, withinMs: number): Promise<void> => {
  const deadline = performance.now() + withinMs;
  while (performance.now() < deadline && child.exitCode === null && child.signalCode === null) {
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

const untilReady = async (fleet: Fleet): Promise<void> => {
  const running = fleet.places.filter((instance) => instance !== undefined);
  await Promise.all(running.map((instance) => ready(instance, ALL_READY_WITHIN_MS)));
};

const start = async (fleet: Fleet): Promise<void> => {
  await Promise.all(Array.from({ length: fleet.options.places }, (_, place) => begin(fleet, place)));
  await untilReady(fleet);
};

const kill = async (fleet: Fleet, place: number, awayMs: number): Promise<void> => {
  const instance = fleet.places[place];
  fleet.places[place] = undefined;
  if (instance !== undefined) await leave(fleet, instance, 'SIGKILL');
  await sleep(awayMs);
  // A roll may have begun there meanwhile.
  if (fleet.places[place] !== undefined) return;
  const { before } = await begin(fleet, place);
  if (before !== undefined) await leave(fleet, before, 'SIGTERM');
};

/** Returns the last lines of a process's output that are not log lines: most likely a stack trace. */
function lastWords({ output }: Instance): string {
  const lines = output()
    .split('\n')
    .filter((line) => !line.startsWith('{'));
  return lines.join('\n').trim().slice(-2_000);
}
