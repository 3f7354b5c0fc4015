import type { Entry } from './history.ts';
import { LANES, type Lane } from './plan-faults.ts';
import { ANSWER_MS, type Span } from './probe-endpoint.ts';

/**
 * Returns the spans with a lasting fault. Leaves out the times in which a process or Postgres has a fault or recovers
 * from it, and ANSWER_MS before that, because requests from then may still be running.
 */
export function lastingAlone(entries: readonly Entry[], recoveryS: number): Span[] {
  const disturbed = [...spansOf(entries, 'processes'), ...spansOf(entries, 'database')].map(([from, until]): Span => [
    from - ANSWER_MS,
    until + recoveryS * 1_000,
  ]);
  return spansOf(entries, 'lasting').flatMap((span) =>
    disturbed.reduce((left, each) => left.flatMap((part) => without(part, each)), [span] as Span[]),
  );
}

function spansOf(entries: readonly Entry[], lane: Lane): Span[] {
  const begins = entries.filter(
    ({ what, kind }) => what === 'fault begins' && Object.hasOwn(LANES[lane], String(kind)),
  );
  return begins.map(({ at, kind, nth }): Span => {
    const end = entries.find((entry) => entry.what === 'fault ends' && entry.kind === kind && entry.nth === nth);
    return [at, end?.at ?? Number.POSITIVE_INFINITY];
  });
}

function without([from, until]: Span, [cutFrom, cutUntil]: Span): Span[] {
  const parts: Span[] = [
    [from, Math.min(until, cutFrom)],
    [Math.max(from, cutUntil), until],
  ];
  return parts.filter(([first, last]) => first < last);
}
