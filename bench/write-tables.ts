import { nameOf, type Compared } from './compare-in-turn.ts';
import { reaches, type Figure } from './figures.ts';
import type { Measurement } from './start-contest.ts';
import { median } from './summarize.ts';

/** Writes the results as tables in Markdown, which read well on a terminal too. A figure without a result is left out. */
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
    const ratios = contests.find((each) => each.ratios.has(name))?.ratios.get(name);
    const spread = ratios === undefined ? '' : `${show(Math.min(...ratios))} to ${show(Math.max(...ratios))}`;
    const goal = 'atLeast' in figure.goal ? `at least ${figure.goal.atLeast}` : `at most ${figure.goal.atMost}`;
    const verdict = reaches(figure, value) ? '' : 'not reached';
    say(`| ${figure.what} | ${show(value)}${figure.unit ?? ''} | ${spread} | ${goal} | ${verdict} |`);
  }
}

function show(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2);
}
