import { nameOf, type Compared } from '../measure/compare-in-turn.ts';
import { reaches, type Figure } from './figures.ts';
import { inShort, spreadOf } from './record-figures.ts';
import type { Measurement } from '../variants/start-contest.ts';
import { median } from '../measure/summarize.ts';

/** Writes the results as Markdown tables, which are readable on a terminal too. Leaves out figures without a result. */
export function writeTables<Name extends string>(
  contests: readonly Compared<Name>[],
  figures: Record<Name, Figure>,
  results: Record<Name, number | null>,
  say: (line: string) => void,
): void {
  for (const { cells } of contests) {
    const columns = ['way, connections', 'webhooks a second: median', 'least to most', 'p50 ms', 'p99 ms'];
    columns.push('CPU per webhook, Node / Postgres / sender, us', 'on disk, bytes');
    say(`\n| ${columns.join(' | ')} |\n|${'---|'.repeat(columns.length)}`);
    for (const { cell, rounds } of cells.values()) {
      const rates = rounds.map((round) => round.perSecond);
      const middle = (name: keyof Omit<Measurement, 'answers'>, digits = 0): string => {
        const value = median(rounds.map((round) => round[name]));
        return Number.isNaN(value) ? '-' : value.toFixed(digits);
      };
      const spread = `${Math.min(...rates).toFixed(0)} to ${Math.max(...rates).toFixed(0)}`;
      const spent = (['nodeUs', 'postgresUs', 'senderUs'] as const).map((name) => middle(name)).join(' / ');
      const latency = [middle('p50Ms', 2), middle('p99Ms', 2)];
      say(`| ${[nameOf(cell), middle('perSecond'), spread, ...latency, spent, middle('diskBytes')].join(' | ')} |`);
    }
  }
  say('\n| figure | measured | least to most | goal | |\n|---|---|---|---|---|');
  for (const [name, figure] of Object.entries(figures) as [Name, Figure][]) {
    const value = results[name];
    if (value === null) continue;
    const range = spreadOf(contests, name);
    const spread = range === undefined ? '' : `${inShort(range.least)} to ${inShort(range.most)}`;
    const verdict = reaches(figure, value) ? '' : 'not reached';
    say(`| ${figure.what} | ${inShort(value)}${figure.unit ?? ''} | ${spread} | ${inWords(figure)} | ${verdict} |`);
  }
}

function inWords({ goal }: Figure): string {
  if (goal === undefined) return '';
  return 'atLeast' in goal ? `at least ${goal.atLeast}` : `at most ${goal.atMost}`;
}
