import { Worker } from 'node:worker_threads';
import type { History } from './history.ts';

/** A piece of work: when it was due, how long it took from then, and how long it takes on an idle machine. */
export type Piece = { due: number; tookMs: number; leastMs: number };

export type Slowdown = {
  /** How many times slower than idle the machine was between two times, in milliseconds since the run's beginning. */
  between(from: number, until: number): number;
  stop(): Promise<unknown>;
};

export const PERIOD_MS = 500;
const TIME_WORK = new URL('./time-work.ts', import.meta.url);

/** Measures how slow the machine is. Uses its own thread, so that the work of the harness does not count. */
export function measureSlowdown(history: History): Slowdown {
  const pieces: Piece[] = [];
  const thread = new Worker(TIME_WORK);
  thread.unref();
  thread.on('message', (piece: Piece) => pieces.push(piece));
  return {
    between(from, until) {
      const began = performance.timeOrigin + performance.now() - history.now();
      return slowdownOf(pieces, began + from, began + until);
    },
    stop: () => thread.terminate(),
  };
}

/** A piece of work stands for the time until the next one, or for the time that it took, if that was longer. */
export function slowdownOf(pieces: readonly Piece[], from: number, until: number): number {
  const leastMs = Math.min(...pieces.map((piece) => piece.leastMs));
  let [passed, used] = [0, 0];
  for (const { due, tookMs } of pieces) {
    const lasted = Math.max(0, Math.min(until, due + Math.max(PERIOD_MS, tookMs)) - Math.max(from, due));
    passed += lasted;
    used += (lasted * leastMs) / tookMs;
  }
  return used === 0 ? 1 : Math.max(1, Math.round((100 * passed) / used) / 100);
}
