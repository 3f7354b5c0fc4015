import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../domain/log.ts';
import { restAfter } from './rest-after.ts';
import { workLoop, type WorkLoop } from './work-loop.ts';

/** Time in which commits are collected for one poll: on a busy evening there are thousands a second. */
export const GATHER_MS = 50;
/** The rest after a poll, in times of its duration. Never long: somebody waits. */
const REST = { leastMs: 0, mostMs: 400, times: 2 };

/**
 * Polls the database for watchers: when woken, and every `pollMs` for changes by other processes. Polls one at a time,
 * not at all while nobody watches, and rests after each poll.
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
    pollMs: about.pollMs,
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
  // Started at once: nothing is polled before somebody watches.
  loop.start();
  return loop;
}
