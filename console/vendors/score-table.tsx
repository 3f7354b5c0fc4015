import type { ComponentChildren } from 'preact';
import { duration } from '../parts/duration.ts';
import { percent } from '../parts/percent.ts';
import type { Scorecard } from '../wire.ts';
import './vendors.css';

type Score = Scorecard['day'];

const ROWS: readonly { name: string; of: (score: Score) => ComponentChildren; isBad?: (score: Score) => boolean }[] = [
  { name: 'Orders', of: ({ orders }) => orders },
  { name: 'Accepted', of: ({ accepted, orders }) => percent(orders === 0 ? undefined : accepted / orders) },
  { name: 'Time to accept, median', of: ({ acceptanceSeconds: { p50 } }) => seconds(p50) },
  { name: 'Time to accept, 95 %', of: ({ acceptanceSeconds: { p95 } }) => seconds(p95) },
  { name: 'Webhooks that never came', of: ({ missing }) => missing, isBad: ({ missing }) => missing > 0 },
  { name: 'Duplicate webhooks', of: ({ duplicates }) => duplicates },
  { name: 'Late webhooks', of: ({ late }) => late },
  { name: 'Conflicts', of: ({ conflicts }) => conflicts, isBad: ({ conflicts }) => conflicts > 0 },
  {
    name: 'Failed or held',
    of: ({ refusals }) =>
      Object.keys(refusals).length === 0
        ? 0
        : Object.entries(refusals)
            .toSorted(([, one], [, other]) => other - one)
            .map(([code, times]) => (
              <span key={code} class="vendors-code">
                {times} {code.replaceAll('_', ' ')}
              </span>
            )),
  },
  {
    name: 'Not answering',
    of: ({ downMinutes }) => (downMinutes === 0 ? 0 : duration(downMinutes * 60_000)),
    isBad: ({ downMinutes }) => downMinutes > 0,
  },
];

function seconds(value: number | null): string {
  return value === null ? '–' : duration(value * 1_000);
}

export function ScoreTable({ scorecard: { day, week } }: { scorecard: Scorecard }) {
  return (
    <table class="vendors-scores">
      <caption class="faint">Orders that reached the POS, in whole hours, updated every ten minutes</caption>
      <thead>
        <tr>
          <th scope="col">What</th>
          <th scope="col">24 hours</th>
          <th scope="col">7 days</th>
        </tr>
      </thead>
      <tbody>
        {ROWS.map(({ name, of, isBad }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            {[day, week].map((score, nth) => (
              <td key={nth} class={isBad?.(score) === true ? 'vendors-bad' : undefined}>
                {of(score)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
