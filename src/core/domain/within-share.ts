/**
 * Returns whether one location may hold `own` units of a capacity of `limit` when all locations together hold `held`.
 * `own` and `held` include the new request. A location may hold a third of what is free: a quarter of the whole if it
 * is alone, less if others hold some. So another location always finds capacity.
 */
export function withinShare(own: number, held: number, limit: number): boolean {
  // guard: free-share
  return own <= (limit - held) / 3;
}
