/**
 * True if a location may hold `own` of a limited capacity while all together hold `held` of `limit`. Both numbers include
 * the new request. A location's share is a third of the free rest: a quarter of the whole if it is alone, less if others
 * hold some. So capacity for one more always remains.
 */
export function withinShare(own: number, held: number, limit: number): boolean {
  // guard: free-share
  return own <= (limit - held) / 3;
}
