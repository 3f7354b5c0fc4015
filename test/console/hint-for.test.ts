/** What a search says below its results. */
import { expect, it } from 'vitest';
import { hintFor } from '../../console/search/hint-for.ts';
import { MOST_FOUND } from '../../src/core/domain/most-found.ts';
import type { Found } from '../../console/wire.ts';

const found = (orders: number, locations = 0): Found => ({
  orders: Array.from({ length: orders }, () => ({}) as Found['orders'][number]),
  locations: Array.from({ length: locations }, () => ({ locationId: 'club-1', name: null })),
});

it('a search that finds nothing says so', () => {
  expect(hintFor(found(0), true)).toBe('Nothing found.');
  expect(hintFor(found(0), false)).toBe('Nothing found.');
});

it('a search that finds as many as it can says that there may be more, and how to find fewer', () => {
  expect(hintFor(found(MOST_FOUND), true)).toMatch(
    /^At most 25 orders are shown, the newest\. .* the last digits of the number\. The page Orders finds older ones/,
  );
  expect(hintFor(found(1, MOST_FOUND), false)).toMatch(/^At most 25 of each kind are shown/);
  expect(hintFor(found(MOST_FOUND - 1, MOST_FOUND - 1), false)).toBeUndefined();
});
