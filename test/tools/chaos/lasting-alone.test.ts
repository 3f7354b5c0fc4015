import { expect, it } from 'vitest';
import { lastingAlone } from '../../../tools/chaos/lasting-alone.ts';

const fault = (kind: string, from: number, until: number) => [
  { at: from, what: 'fault begins', kind, nth: 1 },
  { at: until, what: 'fault ends', kind, nth: 1 },
];

it('the time of a lasting fault excludes other faults that may disturb webhooks, and their recovery', () => {
  const entries = [
    ...fault('logstop', 1_000, 60_000),
    ...fault('crash', 10_000, 12_000),
    ...fault('kill', 50_000, 58_000),
  ];
  expect(lastingAlone(entries, 5)).toEqual([
    [1_000, 8_000],
    [17_000, 48_000],
  ]);
});

it('the time of a lasting fault includes other faults that must not disturb webhooks', () => {
  expect(lastingAlone([...fault('logstop', 0, 9), ...fault('hang', 2, 5)], 5)).toEqual([[0, 9]]);
  expect(lastingAlone(fault('hang', 2, 5), 5)).toEqual([]);
});
