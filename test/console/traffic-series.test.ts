import { describe, expect, it } from 'vitest';
import { durationTicks, timeTicks } from '../../console/parts/chart-ticks.ts';
import { percent } from '../../console/parts/percent.ts';
import { showValue, tableRows } from '../../console/parts/series.ts';
import { describePlacements, describeQuantiles, describeWebhooks } from '../../console/traffic/describe-traffic.ts';
import {
  placementSeries,
  quantileSeries,
  webhookSeries,
  type IntegrationTraffic,
} from '../../console/traffic/traffic-series.ts';

const AT = ['2027-01-31T18:00:00Z', '2027-01-31T18:05:00Z', '2027-01-31T18:10:00Z'];
const time = (instant: string): string => instant.slice(11, 16);

const traffic = (about: Partial<IntegrationTraffic> = {}): IntegrationTraffic => ({
  integration: 'standard',
  webhooks: {},
  placements: { sent: [0, 0, 0], failed: [0, 0, 0], held: [0, 0, 0], in_doubt: [0, 0, 0] },
  placementSeconds: { p50: [null, null, null], p95: [null, null, null] },
  liveLagSeconds: { p50: [null, null, null], p95: [null, null, null] },
  ...about,
});

const steps = (from: string, stepSeconds: number, count: number): string[] =>
  Array.from({ length: count }, (_, nth) => new Date(Date.parse(from) + nth * stepSeconds * 1_000).toISOString());

describe('the axis of time', () => {
  const named = (at: string[], offset = 0): string[] => timeTicks(at, () => offset).map((tick) => time(tick.at));

  it.each([
    ['an hour', steps('2027-01-31T17:21:00Z', 60, 60), ['17:30', '17:45', '18:00', '18:15']],
    ['six hours', steps('2027-01-31T12:35:00Z', 300, 72), ['13:00', '14:00', '15:00', '16:00', '17:00', '18:00']],
    ['a day', steps('2027-01-30T18:45:00Z', 900, 96), ['20:00', '00:00', '04:00', '08:00', '12:00', '16:00']],
  ])('has at most six labels for %s', (_, at, expected) => {
    expect(named(at)).toEqual(expected);
  });

  it("is in the reader's time zone", () => {
    const at = steps('2027-01-31T12:35:00Z', 300, 72);
    expect(named(at, -330)).toEqual(['13:30', '14:30', '15:30', '16:30', '17:30', '18:30']);
  });

  it.each([
    ['a full minute', steps('2027-01-31T17:21:30Z', 60, 60), ['17:30', '17:45', '18:00', '18:15']],
    ['a round time', steps('2027-01-31T16:47:00Z', 900, 24), ['17:00', '18:00', '19:00', '20:00', '21:00', '22:00']],
  ])('has round times also if the steps do not begin at %s', (_, at, expected) => {
    expect(named(at)).toEqual(expected);
  });

  it('has no labels without steps', () => {
    expect(named([])).toEqual([]);
  });
});

describe('the axis of durations', () => {
  it.each([
    [
      [null, null],
      [0.01, 0.1, 1, 10],
    ],
    [
      [0.3, null, 1.2],
      [0.2, 0.5, 1, 2],
    ],
    [
      [0.004, 40],
      [0.001, 0.01, 0.1, 1, 10, 60],
    ],
    [[1], [0.5, 1, 2]],
    [[0.0001], [0.001, 0.002]],
    [[9_000], [3_600, 7_200]],
  ])('has the lines $1 for the values $0', (values, ticks) => {
    expect(durationTicks(values)).toEqual(ticks);
  });

  it('contains all values, with two to nine lines', () => {
    for (const least of [0.001, 0.0137, 0.5, 3, 59, 700]) {
      for (const times of [1, 1.5, 4, 60, 1_000]) {
        const most = Math.min(least * times, 7_200);
        const ticks = durationTicks([least, most]);
        expect(ticks[0]).toBeLessThanOrEqual(least);
        expect(ticks.at(-1)).toBeGreaterThanOrEqual(most);
        expect(ticks.length).toBeGreaterThanOrEqual(2);
        expect(ticks.length).toBeLessThanOrEqual(9);
      }
    }
  });
});

describe('the lines of a chart', () => {
  it('are the outcomes of webhooks that occurred, the worst on top', () => {
    const webhooks = { dropped: [0, 1, 0], applied: [1, 2, 3], not_committed: [0, 0, 1] };
    expect(webhookSeries(traffic({ webhooks })).map(({ name }) => name)).toEqual([
      'applied',
      'dropped',
      'not committed',
    ]);
  });

  it('are the sent orders and each other outcome that occurred', () => {
    const placements = { sent: [0, 0, 0], failed: [0, 0, 0], held: [0, 0, 0], in_doubt: [0, 2, 0] };
    expect(placementSeries(traffic({ placements })).map(({ name }) => name)).toEqual(['sent', 'in doubt']);
    expect(placementSeries(traffic()).map(({ name }) => name)).toEqual(['sent']);
  });

  it('differ for p50 and p95 by dashes and not only by colour', () => {
    const series = quantileSeries({ p50: [1, null, 2], p95: [3, null, 4] });
    expect(series.map(({ name, values, isDashed = false }) => ({ name, values, isDashed }))).toEqual([
      { name: 'median', values: [1, null, 2], isDashed: false },
      { name: '95 %', values: [3, null, 4], isDashed: true },
    ]);
  });

  it('are also in a table of the steps with values, newest first', () => {
    const series = [
      { name: 'a', colour: '--good', values: [0, 1, 0] },
      { name: 'b', colour: '--bad', values: [2, 0, null] },
    ];
    expect(tableRows(AT, series)).toEqual([
      { at: AT[1], values: [1, 0] },
      { at: AT[0], values: [0, 2] },
    ]);
  });
});

describe('the summary of a chart', () => {
  it.each([
    [{}, 'None.'],
    [{ applied: [900, 99, 0] }, '999, no errors.'],
    [
      { applied: [90, 0, 0], dropped: [0, 0, 8], unauthorized: [1, 0, 0], not_committed: [0, 1, 0] },
      '100, 10 % errors.',
    ],
    // An unmatched webhook is not an error.
    [{ unmatched: [5, 0, 0], ignored: [5, 0, 0] }, '10, no errors.'],
  ])('for the webhooks %j is "%s"', (webhooks, said) => {
    expect(describeWebhooks(traffic({ webhooks }))).toBe(said);
  });

  it('counts the outcomes of orders', () => {
    const placements = { sent: [3, 4, 0], failed: [0, 1, 0], held: [0, 0, 0], in_doubt: [0, 0, 0] };
    expect(describePlacements(placementSeries(traffic({ placements })))).toBe('7 sent, 1 failed.');
    expect(describePlacements(placementSeries(traffic()))).toBe('None.');
  });

  it.each([
    [[null, null, null], [null, null, null], 'None.'],
    [[0.3, 0.2, null], [2, 0.5, null], 'Last: median 200 ms, 95 % 500 ms; slowest 2.0 s at 18:00.'],
    [[0.3, 0.2, 1], [2, 0.5, 70], 'Last: median 1.0 s, 95 % 1 min.'],
    [[null, 0.2, null], [null, 0.5, null], 'Last: median 200 ms, 95 % 500 ms.'],
  ])('for p50 %j and p95 %j is "%s"', (p50, p95, said) => {
    expect(describeQuantiles({ p50, p95 }, AT, time)).toBe(said);
  });

  it.each([
    ['that is missing', '–', undefined],
    ['of 0', '0 %', 0],
    ['of 0.0004', '< 0.1 %', 0.0004],
    ['of 0.004', '0.4 %', 0.004],
    ['of 0.05', '5 %', 0.05],
    ['of 0.126', '13 %', 0.126],
    ['of 1', '100 %', 1],
  ])('shows a share %s as "%s"', (_what, said, share) => {
    expect(percent(share)).toBe(said);
  });

  it('shows a missing value as –, not as 0', () => {
    expect(showValue(null, 'seconds')).toBe('–');
    expect(showValue(0, 'counts')).toBe('0');
    expect(showValue(0.012, 'seconds')).toBe('12 ms');
  });
});
