import { expect, it } from 'vitest';
import { parseRetryAfter } from '../../../src/core/domain/classify-error.ts';

const date = 'Sat, 28 Nov 2026 18:00:00 GMT';

it.each<[string, number | undefined]>([
  ['120', 120_000],
  ['120.5', 121_000],
  ['0.2', 1_000],
  ['0', 0],
  ['Sat, 28 Nov 2026 18:02:00 GMT', 120_000],
  ['Sat, 28 Nov 2026 17:00:00 GMT', 0],
  ['99999', 3_600_000],
  ['-1', undefined],
  ['1,5', undefined],
  ['1e3', undefined],
  ['', undefined],
  ['soon', undefined],
  ['120, 60', undefined],
])('Retry-After: %s means a wait of %s ms', (wait, milliseconds) => {
  expect(parseRetryAfter(new Headers({ date, 'retry-after': wait }))).toBe(milliseconds);
});
