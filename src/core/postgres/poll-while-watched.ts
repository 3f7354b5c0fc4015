import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../domain/log.ts';
import { workLoop, type WorkLoop } from './work-loop.ts';

/** Commits of that long are looked at together: on a busy evening there are thousands a second. */
export const GATHER_MS = 50;
/** So many times as long as it looked. */
const REST = 2;
/** However long that was: somebody waits. */
const REST_MAX_MS = 400;

/**
 * Looks at the database for whoever watches: when it is woken, and every `pollMs` for what other processes do; one look
 * at a time, and none while nobody watches. Behind each it rests for longer than that took. Postgres going away is told once.
 */
export function pollWhileWatched(about: {
  pollMs: number;
  isWatched: () => boolean;
  look: () => Promise<void>;
  log: Pick<Log, 'warn'>;
  /** What is told when a look fails. */
  failing: string;
}): Pick<WorkLoop, 'wake' | 'stop'> {
  let isBlind = false;
  let restedAt = 0;
  const loop = workLoop<never>({
    capacity: 1,
    pollMs: about.pollMs,
    async claim() {
      if (!about.isWatched()) return [];
      await sleep(Math.max(GATHER_MS, restedAt - performance.now()));
      const began = performance.now();
      try {
        await about.look();
      } finally {
        const ended = performance.now();
        restedAt = ended + Math.min(REST_MAX_MS, (ended - began) * REST);
      }
      isBlind = false;
      return [];
    },
    work: async () => {},
    onClaimError(error) {
      if (!isBlind) about.log.warn({ err: error }, about.failing);
      isBlind = true;
    },
  });
  // Nothing is asked until somebody watches, so it need not wait for a start.
  loop.start();
  return loop;
}
