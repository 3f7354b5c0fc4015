/**
 * True if a location may hold `own` of something bounded while all together hold `held` of `limit`, both counted with
 * what it asks for. Its share is a third of what is left free: a quarter of the whole if nobody else holds any, and less
 * for each of several, so that room is left for one more.
 */
export function withinShare(own: number, held: number, limit: number): boolean {
  // guard: free-share
  return own <= (limit - held) / 3;
}
