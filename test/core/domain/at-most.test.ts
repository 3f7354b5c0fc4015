import { LRUCache } from 'lru-cache';
import { expect, it } from 'vitest';
import { atMost } from '../../../src/core/domain/at-most.ts';

const roomOf = (cache: LRUCache<string, number>): number => {
  const { keyList, valList, next, prev } = LRUCache.unsafeExposeInternals(cache);
  return keyList.length + valList.length + next.length + prev.length;
};

it('a cache keeps the entries that were used last, and no more than its limit', () => {
  const cache = new LRUCache<string, number>(atMost(2));
  for (const [key, value] of [
    ['a', 1],
    ['b', 2],
  ] as const)
    cache.set(key, value);
  cache.get('a');
  cache.set('c', 3);
  expect([...cache.keys()].toSorted()).toEqual(['a', 'c']);
});

it('a cache takes room only for the entries that it has', () => {
  const cache = new LRUCache<string, number>(atMost(50_000));
  expect(roomOf(cache)).toBe(0);
  for (const key of ['a', 'b', 'c']) cache.set(key, 1);
  expect(roomOf(cache)).toBeLessThanOrEqual(4 * 3);
});
