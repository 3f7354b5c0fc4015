import { expect, it } from 'vitest';
import { parseRetryAfter } from '../../../src/core/domain/classify-error.ts';

const date = 'Sat, 28 Nov 2026 18:00:00 GMT';

it.each<[string, string, number?]>([
  ['120', 'a wait of 120 s', 120_000],
  ['120.5', 'a wait of 121 s', 121_000],
  ['0.2', 'a wait of 1 s', 1_000],
  ['0', 'a wait of 0 s', 0],
  ['Sat, 28 Nov 2026 18:02:00 GMT', 'a wait of 120 s', 120_000],
  ['Sat, 28 Nov 2026 17:00:00 GMT', 'a wait of 0 s', 0],
  ['99999', 'a wait of 3600 s', 3_600_000],
  ['-1', 'no wait'],
  ['1,5', 'no wait'],
  ['1e3', 'no wait'],
  ['', 'no wait'],
  ['soon', 'no wait'],
  ['120, 60', 'no wait'],
])('Retry-After: "%s" means %s', (wait, _words, milliseconds) => {
  expect(parseRetryAfter(new Headers({ date, 'retry-after': wait }))).toBe(milliseconds);
});
