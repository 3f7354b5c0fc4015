import { inShort } from '../../src/core/domain/explain-cause.ts';
import { duration } from '../parts/duration.ts';
import { percent } from '../parts/percent.ts';
import { words } from '../parts/tones.ts';
import type { Scorecard } from '../wire.ts';

export type Score = Scorecard['day'];
type Figure = {
  name: string;
  show: (score: Score) => string;
  /** What it consists of. */
  parts?: (score: Score) => string[];
  /** What rows are compared by: the higher, the worse. Null if it is not known. */
  badness: (score: Score) => number | null;
};

/** A count with its share of the orders, because a vendor with many orders has more of everything. */
function counted(name: string, count: (score: Score) => number) {
  const badness = (score: Score): number => count(score) / Math.max(1, score.orders);
  return {
    name,
    badness,
    show: (score: Score) => String(count(score)),
    parts: (score: Score) => (count(score) > 0 ? [`${percent(badness(score))} of orders`] : []),
  };
}

/** A time, also from a minute on to the second, so that vendors differ. */
function timed(name: string, badness: Figure['badness']): Figure {
  const show = (value: number | null): string =>
    value === null ? '–' : value >= 60 && value < 600 ? `${Math.round(value)} s` : duration(value * 1_000);
  return { name, badness, show: (score) => show(badness(score)) };
}

const refused = counted('Failed or held', ({ refusals }) =>
  Object.values(refusals).reduce((all, times) => all + times, 0),
);

/** The first is neither good nor bad. */
export const FIGURES: readonly Figure[] = [
  { name: 'Orders', badness: ({ orders }) => orders, show: ({ orders }) => String(orders) },
  {
    name: 'Accepted',
    badness: ({ accepted, orders }) => (orders === 0 ? null : 1 - accepted / orders),
    show: ({ accepted, orders }) => percent(orders === 0 ? undefined : accepted / orders),
    parts: ({ accepted, orders }) => (orders === 0 ? [] : [`${accepted} of ${orders} orders`]),
  },
  timed('Time to accept, median', ({ acceptanceSeconds: { p50 } }) => p50),
  timed('Time to accept, 95 %', ({ acceptanceSeconds: { p95 } }) => p95),
  counted('Webhooks that never came', ({ missing }) => missing),
  counted('Duplicate webhooks', ({ duplicates }) => duplicates),
  counted('Late webhooks', ({ late }) => late),
  counted('Conflicts', ({ conflicts }) => conflicts),
  {
    ...refused,
    parts: (score) => [
      ...refused.parts(score),
      ...Object.entries(score.refusals)
        .toSorted(([, one], [, other]) => other - one)
        .map(([code, times]) => `${times}× ${inShort({ code }) ?? words(code)}`),
    ],
  },
  {
    name: 'Not answering',
    badness: ({ downMinutes }) => downMinutes,
    show: ({ downMinutes }) => (downMinutes === 0 ? '0' : duration(downMinutes * 60_000)),
  },
];
