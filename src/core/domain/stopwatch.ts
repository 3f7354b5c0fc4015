/**
 * Begins to measure time for a limit that must hold even on a machine that is suspended, whose monotonic clock stands
 * still meanwhile. A clock that is set forward looks the same; then a call is given up that could have gone on.
 * @returns the milliseconds since then, by whichever clock has gone further
 */
export function stopwatch(): () => number {
  const began = { monotonic: performance.now(), wall: Date.now() };
  return () => Math.max(performance.now() - began.monotonic, Date.now() - began.wall);
}
