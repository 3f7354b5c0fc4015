/**
 * Limits an LRUCache to this many entries. With `max` in place of this, the cache would reserve room for all of them when
 * it is made: 1 MB for 50,000.
 */
export const atMost = (entries: number): { maxSize: number; sizeCalculation: () => number } => ({
  maxSize: entries,
  sizeCalculation: () => 1,
});
