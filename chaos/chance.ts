import { hash } from 'node:crypto';

/**
 * A number from 0 up to, but not including, 1 that depends on the seed and on what it is about, and on nothing that
 * happened before: however the run goes, the same question has the same answer.
 */
export function chance(seed: number, ...about: readonly (string | number)[]): number {
  return Number.parseInt(hash('sha256', [seed, ...about].join('/')).slice(0, 12), 16) / 2 ** 48;
}

/** One of them, by `chance`. */
export function pick<Item>(from: readonly Item[], by: number): Item {
  const item = from[Math.floor(by * from.length)];
  if (item === undefined) throw new Error('there is nothing to pick from');
  return item;
}

/** The same items in an order of the seed's own. */
export function shuffle<Item>(items: readonly Item[], seed: number, ...about: readonly (string | number)[]): Item[] {
  return items
    .map((item, nth) => ({ item, key: chance(seed, ...about, nth) }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ item }) => item);
}
