import os from 'node:os';

/** The shortest suspension that matters. The time since the machine booted is exact to some 10 ms. */
const SHORTEST_MS = 1_000;

/** How far the machine's clock is ahead of the monotonic one. A suspension moves it, and whoever sets the clock. */
const clockAhead = (): number => Date.now() - performance.now();
/** How far the time since the machine booted is ahead of it. Only a suspension moves that. */
const bootAhead = (): number => os.uptime() * 1_000 - performance.now();

/**
 * Begins to watch whether the machine is suspended, since its monotonic clock stands still meanwhile.
 * @returns the milliseconds for which it was
 */
export function watchSuspension(): () => number {
  const before = { clock: clockAhead(), boot: bootAhead() };
  return () => {
    // The first question is the cheap one.
    if (clockAhead() - before.clock < SHORTEST_MS) return 0;
    const milliseconds = bootAhead() - before.boot;
    return milliseconds < SHORTEST_MS ? 0 : milliseconds;
  };
}
