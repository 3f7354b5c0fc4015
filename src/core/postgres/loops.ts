import { setTimeout as sleep } from 'node:timers/promises';
import { liveProcesses } from '../domain/live-processes.ts';
import type { BackgroundWorkName, Observe } from '../domain/observed.ts';
import type { Log } from '../domain/log.ts';

const CLAIM_AGAIN_MS = 1_000;

/** @returns milliseconds to rest after work that took `milliseconds`: slow work runs less often, within limits */
export function restAfter(milliseconds: number, rest: { leastMs: number; mostMs: number; times: number }): number {
  return Math.min(rest.mostMs, Math.max(rest.leastMs, rest.times * milliseconds));
}

/** @returns milliseconds to wait: doubled after each failure, up to `mostMs`, minus a random share of up to `jitter` */
export function backoff(failures: number, wait: { firstMs: number; mostMs: number; jitter: number }): number {
  return Math.min(wait.mostMs, wait.firstMs * 2 ** Math.min(failures, 20)) * (1 - wait.jitter * Math.random());
}

/**
 * Repeats `work`, with a rest between two rounds, until `signal` is aborted and the last round is over. A failure is
 * reported and does not stop the rounds.
 * @param about.times the rest is so many times as long as the work was, if that is longer, up to a minute
 * @param about.isShared true if a round of any process is enough: each process rests so many times longer as there are
 *   processes, so that all together work as often as one
 * @param about.due resolves when there may be work, which a round waits for. See `whenDue`
 */
export async function runEvery(
  milliseconds: number,
  work: () => Promise<unknown>,
  about: {
    observe: Observe;
    name: BackgroundWorkName;
    firstMs: number;
    times?: number;
    isShared?: boolean;
    due?: (() => Promise<void>) | undefined;
    signal: AbortSignal;
  },
): Promise<void> {
  const { observe, name, firstMs, times = 0, isShared = false, due, signal } = about;
  const rest = (time: number): Promise<void> => sleep(time, undefined, { signal }).catch(() => {});
  await rest(firstMs);
  while (!signal.aborted) {
    if (due !== undefined) await orAborted(due(), signal);
    if (signal.aborted) return;
    const began = performance.now();
    await work().then(
      () => observe({ what: 'background work', work: name, outcome: 'done' }),
      (error: unknown) => observe({ what: 'background work', work: name, outcome: 'failed', error }),
    );
    // guard: shared-rounds
    const leastMs = milliseconds * (isShared ? liveProcesses.count : 1);
    // guard: rest-after-work
    await rest(restAfter(performance.now() - began, { leastMs, mostMs: Math.max(60_000, leastMs), times }));
  }
}

function orAborted(due: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      signal.removeEventListener('abort', end);
      resolve();
    };
    signal.addEventListener('abort', end);
    void due.then(end);
  });
}

export type WorkLoop = {
  /** Starts claiming. A `wake` before this has no effect. */
  start(): void;
  wake(): void;
  /**
   * Claims once, with the whole capacity. Resolves with the number of pieces when all of them are done. Tests step a loop
   * that was not started. @throws what the claim throws
   */
  round(): Promise<number>;
  /** Stops claiming, and resolves when the work under way is done. */
  stop(): Promise<void>;
};

/**
 * Claims work from the database and does it until it is stopped, at most `capacity` pieces at the same time. It claims
 * when it is woken, when a piece is done, and by `poll` for work left by other processes. Repeated failures of claims are
 * logged once, because an outage of Postgres takes minutes.
 * @param about.poll returns milliseconds until the next claim, or what resolves when there may be work. See `whenDue`.
 *   With Infinity the loop sleeps until it is woken
 * @param about.gather for small pieces, which one claim takes all: the least time from one claim to the next, and the time
 *   for which a piece that is done waits for another claim. Without it, a claim follows each claim that found something
 */
export function workLoop<Piece>(about: {
  capacity: number;
  gather?: { everyMs: number; doneMs: number };
  poll: () => number | Promise<void>;
  claim: (limit: number) => Promise<Piece[]>;
  /** Must handle its own errors. */
  work: (piece: Piece) => Promise<void>;
  log: Pick<Log, 'error'>;
  /** The log's message when claiming fails. */
  failing: string;
}): WorkLoop {
  const underWay = new Set<Promise<void>>();
  const stopping = new AbortController();
  let isFailing = false;
  let woken = Promise.withResolvers<void>();
  let polling: Promise<void> | undefined;
  let claimedAt = -Infinity;
  let wakesSoon: NodeJS.Timeout | undefined;
  const wake = (): void => woken.resolve();
  const wakeAfterDone = (): void => {
    if (about.gather === undefined || underWay.size >= about.capacity - 1) wake();
    else wakesSoon ??= setTimeout(wake, about.gather.doneMs);
  };

  const rest = async (): Promise<void> => {
    // A claim that failed may have been committed. Then nothing is due until its leases expire.
    // guard: claim-again
    const poll = isFailing ? CLAIM_AGAIN_MS : polling === undefined ? about.poll() : Infinity;
    if (typeof poll === 'number') return wokenWithin(woken.promise, poll);
    // One that is left by a wake-up is awaited by the next rest.
    polling = poll.then(() => {
      polling = undefined;
      wake();
    });
    return woken.promise;
  };

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const restMs = about.gather === undefined ? 0 : claimedAt + about.gather.everyMs - performance.now();
      if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs));
      claimedAt = performance.now();
      // Set before the claim, so that a wake-up during it is not missed.
      woken = Promise.withResolvers<void>();
      clearTimeout(wakesSoon);
      wakesSoon = undefined;
      let pieces: Piece[] = [];
      const limit = about.capacity - underWay.size;
      try {
        if (limit > 0) {
          pieces = await about.claim(limit);
          isFailing = false;
        }
      } catch (error) {
        if (!isFailing) about.log.error({ err: error }, about.failing);
        isFailing = true;
      }
      for (const piece of pieces) {
        const working: Promise<void> = about.work(piece).finally(() => {
          underWay.delete(working);
          wakeAfterDone();
        });
        underWay.add(working);
      }
      const hasAll = pieces.length < (about.gather === undefined ? 1 : limit);
      if (hasAll || underWay.size >= about.capacity) await rest();
    }
    await Promise.all(underWay);
    clearTimeout(wakesSoon);
  };

  let running: Promise<void> | undefined;
  return {
    start() {
      running ??= run();
    },
    wake,
    async round() {
      const pieces = await about.claim(about.capacity);
      await Promise.all(pieces.map(about.work));
      return pieces.length;
    },
    async stop() {
      stopping.abort();
      wake();
      await running;
    },
  };
}

export type InTurn = <Result>(work: () => Promise<Result>) => Promise<Result>;

/** Makes a function that begins each piece of work when the one before is over. */
export function oneAfterTheOther(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work);
    last = next.catch(() => {});
    return next;
  };
}

export function joinLoops(loops: readonly WorkLoop[]): WorkLoop {
  return {
    start: () => loops.forEach((loop) => loop.start()),
    wake: () => loops.forEach((loop) => loop.wake()),
    async round() {
      const pieces = await Promise.all(loops.map((loop) => loop.round()));
      return pieces.reduce((all, each) => all + each, 0);
    },
    stop: async () => void (await Promise.all(loops.map((loop) => loop.stop()))),
  };
}

async function wokenWithin(woken: Promise<void>, milliseconds: number): Promise<void> {
  if (milliseconds === Infinity) return woken;
  let timer: NodeJS.Timeout | undefined;
  const elapsed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await Promise.race([woken, elapsed]);
  clearTimeout(timer);
}

/** Pause before a poll, so that one poll serves many commits: a busy evening has thousands a second. */
export const GATHER_MS = 50;
/** The rest after a poll, as a multiple of the poll's duration. It is short because watchers wait. */
const REST = { leastMs: 0, mostMs: 400, times: 2 };

/**
 * Polls the database for watchers: when it is woken, and every `pollMs` for changes by other processes. It runs one
 * poll at a time, with a rest after each. Without watchers it sleeps until `wake`, which a new watcher must call.
 */
export function pollWhileWatched(about: {
  pollMs: number;
  isWatched: () => boolean;
  poll: () => Promise<void>;
  log: Pick<Log, 'error'>;
  /** The log's message when a poll fails. */
  failing: string;
}): Pick<WorkLoop, 'wake' | 'stop'> {
  let restedAt = 0;
  const loop = workLoop<never>({
    capacity: 1,
    // guard: unwatched-rest
    poll: () => (about.isWatched() ? about.pollMs : Infinity),
    async claim() {
      if (!about.isWatched()) return [];
      await sleep(Math.max(GATHER_MS, restedAt - performance.now()));
      const began = performance.now();
      try {
        await about.poll();
      } finally {
        const ended = performance.now();
        restedAt = ended + restAfter(ended - began, REST);
      }
      return [];
    },
    work: async () => {},
    log: about.log,
    failing: about.failing,
  });
  // The loop starts at once, because it does not poll without watchers.
  loop.start();
  return loop;
}
