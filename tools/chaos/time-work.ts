/** A thread that does the same piece of work twice a second, and reports how long each took since it was due. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';
import { PERIOD_MS, type Piece } from './measure-slowdown.ts';

/** A piece of work is longer than a scheduler's time slice, a step is shorter, so some steps are never interrupted. */
const STEPS = 25;
const ROUNDS_A_STEP = 600_000;
const WARM_UP = 200;

const now = (): number => performance.timeOrigin + performance.now();
let mixed = 1;
let fastestMs = Number.POSITIVE_INFINITY;

function step(): void {
  const began = performance.now();
  for (let round = 0; round < ROUNDS_A_STEP; round += 1) mixed = Math.imul(mixed ^ round, 0x9e37_79b1);
  fastestMs = Math.min(fastestMs, performance.now() - began);
}

for (let nth = 0; nth < WARM_UP; nth += 1) step();
for (let due = now(); ; await sleep(Math.max(1, due - now()))) {
  for (let nth = 0; nth < STEPS; nth += 1) step();
  const ended = now();
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
  parentPort?.postMessage({ due, tookMs: ended - due, leastMs: STEPS * fastestMs } satisfies Piece);
  due = Math.max(due + PERIOD_MS, ended);
}
