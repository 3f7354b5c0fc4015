import { hash } from 'node:crypto';

/**
 * Returns a number from 0 up to, but not including, 1. It depends only on the arguments, not on earlier calls. So a
 * seed always gives the same numbers, whatever happens in the run.
 */
export function chance(seed: number, ...about: readonly (string | number)[]): number {
  return Number.parseInt(hash('sha256', [seed, ...about].join('/')).slice(0, 12), 16) / 2 ** 48;
}

/** Picks one of the items. @param by a number from `chance` */
export function pick<Item>(from: readonly Item[], by: number): Item {
  const item = from[Math.floor(by * from.length)];
  if (item === undefined) throw new Error('there is nothing to pick from');
  return item;
}

/** Shuffles the items by the seed. */
export function shuffle<Item>(items: readonly Item[], seed: number, ...about: readonly (string | number)[]): Item[] {
  return items
    .map((item, nth) => ({ item, key: chance(seed, ...about, nth) }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ item }) => item);
}
