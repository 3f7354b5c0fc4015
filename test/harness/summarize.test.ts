import { describe, expect, it } from 'vitest';
import { median, percentile, summarize } from '../../tools/bench/measure/summarize.ts';

describe('median', () => {
  it('is the middle value, or the mean of the two middle ones', () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([9, 1, 5, 7])).toBe(6);
    expect(median([4])).toBe(4);
    expect(median([])).toBeNaN();
  });

  it('does not change the order of its input', () => {
    const given = [3, 1, 2];
    median(given);
    percentile(given, 0.5);
    expect(given).toEqual([3, 1, 2]);
  });
});

describe('percentile', () => {
  it('is the smallest value that is above the given share of the values', () => {
    const values = Array.from({ length: 100 }, (_, nth) => 100 - nth);
    expect(percentile(values, 0.5)).toBe(51);
    expect(percentile(values, 0.99)).toBe(100);
    expect(percentile([1, 2], 0.5)).toBe(2);
    expect(percentile([1, 2, 3], 0.5)).toBe(2);
    expect(percentile([1, 2, 3], 1)).toBe(3);
    expect(percentile([], 0.5)).toBeNaN();
  });
});

it('a summary has the number of answers by status and per second', () => {
  const latencies = Array.from({ length: 200 }, (_, nth) => nth + 1);
  expect(summarize(latencies, 4_000, { 200: 200 })).toEqual({
    answers: { 200: 200 },
    perSecond: 50,
    p50Ms: 101,
    p99Ms: 199,
  });
});
