/**
 * Gives the code of parties virtual time and seeded chance: the clock, all timers and all sources of random values of
 * this thread. Code outside a party, such as a client of Postgres, keeps the real ones.
 */
import crypto from 'node:crypto';
import fsPromises from 'node:fs/promises';
import fs from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { chance } from '../chaos/chance.ts';
import { BEGIN, currentParty, inOrder, theSchedule, type Event, type Party } from './schedule.ts';

const require = createRequire(import.meta.url);
const timers = require('node:timers') as Record<string, unknown>;
const timersPromises = require('node:timers/promises') as Record<string, unknown>;

const real = {
  Date,
  now: performance.now.bind(performance),
  random: Math.random,
  setTimeout,
  setInterval,
  setImmediate,
  clearTimeout,
  sleep: timersPromises['setTimeout'] as (ms?: number, value?: unknown, options?: object) => Promise<unknown>,
  timeout: AbortSignal.timeout.bind(AbortSignal),
  randomUUID: crypto.randomUUID.bind(crypto),
  randomBytes: crypto.randomBytes.bind(crypto) as (size: number) => Buffer,
  randomInt: crypto.randomInt.bind(crypto) as (...about: number[]) => number,
  uptime: os.uptime.bind(os),
  readdir: fsPromises.readdir,
  readFile: fsPromises.readFile,
};

type Callback = (...about: unknown[]) => void;
/** A simulated timer has what code uses of Node's timers. */
type Timer = { ref(): Timer; unref(): Timer; hasRef(): boolean; refresh(): Timer; close(): Timer; stop(): void };
const isTimer = (value: unknown): value is Timer => typeof value === 'object' && value !== null && 'stop' in value;

function timerOf(party: Party, ms: number, run: () => void, repeats = false): Timer {
  let event: Event;
  const start = (): void => {
    // Node's timers have whole milliseconds, at least one.
    event = theSchedule().after(Math.max(1, Math.trunc(ms) || 1), party, () => {
      if (repeats) start();
      run();
    });
  };
  const timer: Timer = {
    ref: () => timer,
    unref: () => timer,
    hasRef: () => true,
    refresh() {
      event.cancel();
      start();
      return timer;
    },
    close() {
      event.cancel();
      return timer;
    },
    stop: () => event.cancel(),
  };
  start();
  return timer;
}

const wallOf = ({ clockAheadMs }: Party): number => Math.floor(theSchedule().wall() + clockAheadMs);

function drawBytes(party: Party, size: number): Buffer {
  const blocks: Buffer[] = [];
  for (let length = 0; length < size; length += 32) {
    party.drawn += 1;
    blocks.push(crypto.hash('sha256', `${theSchedule().seed}/${party.name}/${party.drawn}`, 'buffer'));
  }
  return Buffer.concat(blocks).subarray(0, size);
}

function drawUuid(party: Party): string {
  const hex = drawBytes(party, 16).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function drawNumber(party: Party): number {
  party.drawn += 1;
  return chance(theSchedule().seed, party.name, party.drawn);
}

/** Makes a function that does one thing for a party and another outside. */
function either<Args extends unknown[], Result>(
  simulated: (party: Party, ...about: Args) => Result,
  otherwise: (...about: Args) => Result,
): (...about: Args) => Result {
  return (...about) => {
    const party = currentParty();
    return party === undefined ? otherwise(...about) : simulated(party, ...about);
  };
}

function sleepOf(party: Party, ms = 1, value?: unknown, options: { signal?: AbortSignal } = {}): Promise<unknown> {
  const { signal } = options;
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      timer.stop();
      reject(
        Object.assign(new Error('The operation was aborted', { cause: signal?.reason }), {
          name: 'AbortError',
          code: 'ABORT_ERR',
        }),
      );
    };
    const timer = timerOf(party, ms, () => {
      signal?.removeEventListener('abort', abort);
      resolve(value);
    });
    if (signal?.aborted === true) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
}

function timeoutSignal(party: Party, ms: number): AbortSignal {
  const controller = new AbortController();
  const late = (): void =>
    controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
  timerOf(party, ms, late);
  return controller.signal;
}

const clear = (timer: unknown): void => {
  if (isTimer(timer)) timer.stop();
  else real.clearTimeout(timer as NodeJS.Timeout | undefined);
};

let isInstalled = false;

/** Replaces what is global in this thread. Must be called before the service's code is loaded. */
export function installVirtualGlobals(): void {
  if (isInstalled) return;
  isInstalled = true;
  const dateNow = either(wallOf, real.Date.now);
  globalThis.Date = new Proxy(real.Date, {
    apply: (Real) => new Real(dateNow()).toString(),
    construct: (Real, values: [], newTarget) =>
      Reflect.construct(Real, values.length === 0 ? [dateNow()] : values, newTarget) as Date,
    get: (Real, name, receiver): unknown => (name === 'now' ? dateNow : (Reflect.get(Real, name, receiver) as unknown)),
  });
  performance.now = either(() => theSchedule().now(), real.now);
  Math.random = either(drawNumber, real.random);
  const start = either(
    (party, run: Callback, ms: number = 1, ...about: unknown[]): unknown => timerOf(party, ms, () => run(...about)),
    real.setTimeout as (run: Callback, ms?: number, ...about: unknown[]) => unknown,
  );
  const repeat = either(
    (party, run: Callback, ms: number = 1, ...about: unknown[]): unknown =>
      timerOf(party, ms, () => run(...about), true),
    real.setInterval as (run: Callback, ms?: number, ...about: unknown[]) => unknown,
  );
  const soon = either(
    (party, run: Callback, ...about: unknown[]): unknown => {
      const event = theSchedule().after(0, party, () => run(...about));
      return { stop: () => event.cancel() };
    },
    real.setImmediate as (run: Callback, ...about: unknown[]) => unknown,
  );
  const globals = {
    setTimeout: start,
    setInterval: repeat,
    setImmediate: soon,
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  };
  // Node's own immediates are no timers.
  globals.clearImmediate = (timer) => (isTimer(timer) ? timer.stop() : clearImmediateOf(timer));
  const clearImmediateOf = clearImmediate as (timer: unknown) => void;
  Object.assign(globalThis, globals);
  Object.assign(timers, globals);
  timersPromises['setTimeout'] = either(sleepOf, real.sleep);
  AbortSignal.timeout = either(timeoutSignal, real.timeout);
  crypto.randomUUID = either(drawUuid, real.randomUUID) as typeof crypto.randomUUID;
  crypto.randomBytes = either(drawBytes, real.randomBytes) as typeof crypto.randomBytes;
  crypto.randomInt = either((party, ...about: number[]) => {
    const [first = 0, second] = about;
    const [from, to] = second === undefined ? [0, first] : [first, second];
    return from + Math.floor(drawNumber(party) * (to - from));
  }, real.randomInt) as typeof crypto.randomInt;
  os.uptime = either(() => theSchedule().now() / 1_000, real.uptime);
  // What is read at a start is read at once: an answer from another thread could come at any event.
  fsPromises.readdir = either(
    async (_, ...about: unknown[]) => Reflect.apply(fs.readdirSync, fs, about) as never,
    real.readdir as never,
  );
  fsPromises.readFile = either(
    async (_, ...about: unknown[]) => Reflect.apply(fs.readFileSync, fs, about) as never,
    real.readFile as never,
  );
  const subtle = Object.getPrototypeOf(globalThis.crypto.subtle) as Record<string, unknown>;
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(subtle))) {
    if (typeof value !== 'function' || name === 'constructor') continue;
    const method = value as (...about: unknown[]) => Promise<unknown>;
    subtle[name] = function (this: unknown, ...about: unknown[]): Promise<unknown> {
      const run = (): Promise<unknown> => Reflect.apply(method, this, about);
      return currentParty() === undefined ? run() : inOrder(run);
    };
  }
  syncBuiltinESMExports();
}

/** The true virtual time as Postgres reads it, always of the same length. */
export function postgresTime(now: number): string {
  const micros = Math.floor(now * 1_000);
  const seconds = new real.Date(BEGIN + Math.floor(micros / 1_000)).toISOString().slice(0, 19);
  return `${seconds}.${String(micros % 1_000_000).padStart(6, '0')}Z`;
}
