/** @returns milliseconds to rest after work that took so long: what takes more is done less often, within limits */
export function restAfter(milliseconds: number, rest: { leastMs: number; mostMs: number; times: number }): number {
  return Math.min(rest.mostMs, Math.max(rest.leastMs, rest.times * milliseconds));
}
