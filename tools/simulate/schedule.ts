import { AsyncLocalStorage } from 'node:async_hooks';
import { hash } from 'node:crypto';
import { chance } from '../chaos/chance.ts';

/** Somebody whose code runs in virtual time: a process of the service, or the world around it. */
export type Party = {
  name: string;
  /** The code of a dead party never runs again: its promises never settle. */
  isDead: boolean;
  /** How far the party's wall clock is ahead of the true time. */
  clockAheadMs: number;
  /** Until this time the party does not run, like a suspended process. */
  frozenUntil: number;
  /** The number of random numbers that it has drawn. */
  drawn: number;
};

/** Something that will happen. It is put into the queue by `schedule.at`. */
export type Event = { cancel(): void };

type Entry = { at: number; order: number; isCancelled: boolean; party: Party | undefined; run: () => unknown };

export type Schedule = {
  readonly seed: number;
  /** Virtual milliseconds since the run began. */
  now(): number;
  /** Virtual milliseconds since 1970. */
  wall(): number;
  /**
   * Runs `run` after `delayMs`, as a part of `party`. Without a party it is a part of the simulator itself, which may
   * wait for real answers: the schedule waits until its promise is settled.
   */
  after(delayMs: number, party: Party | undefined, run: () => unknown): Event;
  /** A number from 0 up to 1 that depends on the seed, the label and how often the label was drawn before. */
  draw(label: string): number;
  /** Adds a line to the history, of which the run has a hash. */
  note(line: string): void;
  /** Runs event after event until `isOver` is true, which is asked after each event. */
  play(isOver: () => boolean): Promise<void>;
  /** The hash of everything that was noted. */
  digest(): string;
  /** The last lines of the history. */
  lines(): readonly string[];
  events(): number;
};

const parties = new AsyncLocalStorage<Party>();

/** The party whose code runs now. Undefined in the simulator itself, where time is real. */
export const currentParty = (): Party | undefined => parties.getStore();
/** Runs code as the simulator: in real time. */
export const asSimulator = <Result>(run: () => Result): Result => parties.exit(run);
export const asParty = <Result>(party: Party, run: () => Result): Result => parties.run(party, run);

export const newParty = (name: string): Party => ({ name, isDead: false, clockAheadMs: 0, frozenUntil: 0, drawn: 0 });

/** The time at which each run begins. */
export const BEGIN = Date.UTC(2026, 10, 23, 18);

const realImmediate = setImmediate;
/** Resolves when no microtask is left. */
const quiet = (): Promise<void> => new Promise((resolve) => void realImmediate(resolve));

/** Work of other threads that parties wait for, such as encryption. It takes no virtual time, and ends in its order. */
let work: Promise<unknown> = Promise.resolve();
const underWay = new Set<Promise<unknown>>();
export function inOrder<Result>(start: () => Promise<Result>): Promise<Result> {
  const done: Promise<Result> = work.then(start).finally(() => underWay.delete(done));
  underWay.add(done);
  work = done.catch(() => {});
  return done;
}

let current: Schedule | undefined;
/** The schedule of the run under way. */
export function theSchedule(): Schedule {
  if (current === undefined) throw new Error('no simulation is under way');
  return current;
}

/** Begins a run. There is one at a time, because the clock and the timers of this thread are its own. */
export function beginSchedule(seed: number, keepLines: boolean): Schedule {
  const queue = heap();
  const draws = new Map<string, number>();
  const kept: string[] = [];
  let pending: string[] = [];
  let chain = '';
  let now = 0;
  let count = 0;
  let played = 0;

  const fold = (): void => {
    chain = hash('sha256', `${chain}\n${pending.join('\n')}`);
    pending = [];
  };
  const schedule: Schedule = {
    seed,
    now: () => now,
    wall: () => BEGIN + now,
    after(delayMs, party, run) {
      const entry: Entry = { at: now + Math.max(0, delayMs), order: (count += 1), isCancelled: false, party, run };
      queue.push(entry);
      return {
        cancel() {
          entry.isCancelled = true;
        },
      };
    },
    draw(label) {
      const nth = (draws.get(label) ?? 0) + 1;
      draws.set(label, nth);
      return chance(seed, label, nth);
    },
    note(line) {
      const dated = `${(now / 1_000).toFixed(4)} ${line}`;
      pending.push(dated);
      if (keepLines) kept.push(dated);
      if (pending.length > 500) fold();
    },
    async play(isOver) {
      while (!isOver()) {
        const entry = queue.pop();
        if (entry === undefined)
          throw new Error(`the simulation stands still: nothing is scheduled after\n${kept.slice(-20).join('\n')}`);
        const { party, run } = entry;
        if (entry.isCancelled || party?.isDead === true) continue;
        if (party !== undefined && party.frozenUntil > entry.at) {
          // It keeps its place among the events of its party.
          entry.at = party.frozenUntil;
          queue.push(entry);
          continue;
        }
        now = entry.at;
        played += 1;
        if (party === undefined) await run();
        else asParty(party, run);
        await quiet();
        while (underWay.size > 0) {
          await work;
          await quiet();
        }
      }
    },
    digest() {
      fold();
      return chain;
    },
    lines: () => kept,
    events: () => played,
  };
  current = schedule;
  return schedule;
}

/** A queue of events by time, and by the order in which they were put into it. */
function heap(): { push(entry: Entry): void; pop(): Entry | undefined } {
  const items: Entry[] = [];
  const isBefore = (a: number, b: number): boolean => {
    const [left, right] = [items[a], items[b]];
    if (left === undefined || right === undefined) return left !== undefined;
    return left.at < right.at || (left.at === right.at && left.order < right.order);
  };
  const swap = (a: number, b: number): void => {
    [items[a], items[b]] = [items[b] as Entry, items[a] as Entry];
  };
  return {
    push(entry) {
      items.push(entry);
      for (let at = items.length - 1; at > 0;) {
        const above = (at - 1) >> 1;
        if (!isBefore(at, above)) return;
        swap(at, above);
        at = above;
      }
    },
    pop() {
      const first = items[0];
      const last = items.pop();
      if (items.length === 0 || last === undefined) return first;
      items[0] = last;
      for (let at = 0; ;) {
        let least = at;
        for (const child of [2 * at + 1, 2 * at + 2]) if (child < items.length && isBefore(child, least)) least = child;
        if (least === at) return first;
        swap(at, least);
        at = least;
      }
    },
  };
}
