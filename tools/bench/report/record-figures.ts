import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import type { Compared } from '../measure/compare-in-turn.ts';
import type { Figure } from './figures.ts';

/** The only file with measured figures. `npm run docs` writes docs/benchmark.md and its chart from this file. */
const FILE = new URL('figures.json', import.meta.url);

export type Recorded = {
  value: number;
  /** The spread of the rounds. */
  least?: number;
  most?: number;
  unit?: string;
};

/** The figures of one run that no later run has measured again. */
export type Run = {
  /** The day in UTC. */
  date: string;
  machine: string;
  command: string;
  /** More information for the reader. Only people write it, never a run. */
  note?: string;
  figures: Record<string, Recorded>;
};

export function readRuns(): Run[] {
  return JSON.parse(readFileSync(FILE, 'utf8')) as Run[];
}

export async function recordRun(run: Run): Promise<void> {
  await writeFile(FILE, inJson(withRun(readRuns(), run)));
}

export function today(): string {
  return new Date().toISOString().slice(0, 10);
}

/** Adds the run. Removes from the earlier runs those figures that the new run has measured again. */
export function withRun(runs: readonly Run[], run: Run): Run[] {
  const earlier = runs.map((each) => ({
    ...each,
    figures: Object.fromEntries(Object.entries(each.figures).filter(([name]) => !Object.hasOwn(run.figures, name))),
  }));
  return [...earlier, run].filter(({ figures }) => Object.keys(figures).length > 0);
}

export function toRecorded<Name extends string>(
  contests: readonly Compared<Name>[],
  figures: Record<Name, Figure>,
  results: Record<Name, number | null>,
): Record<string, Recorded> {
  const recorded: Record<string, Recorded> = {};
  for (const [name, { unit }] of Object.entries(figures) as [Name, Figure][]) {
    const value = results[name];
    if (value === null) continue;
    const spread = spreadOf(contests, name);
    recorded[name] = {
      value: rounded(value),
      ...(spread !== undefined && { least: rounded(spread.least), most: rounded(spread.most) }),
      ...(unit !== undefined && { unit: unit.trim() }),
    };
  }
  return recorded;
}

/** @returns undefined for a figure that was not measured in rounds */
export function spreadOf<Name extends string>(
  contests: readonly Compared<Name>[],
  name: Name,
): { least: number; most: number } | undefined {
  const ratios = contests.find((each) => each.ratios.has(name))?.ratios.get(name);
  return ratios === undefined ? undefined : { least: Math.min(...ratios), most: Math.max(...ratios) };
}

/** Formats a value as the tables show it. */
export function inShort(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2);
}

function rounded(value: number): number {
  return Number(inShort(value));
}

/** Formats the runs with one figure per line. */
function inJson(runs: readonly Run[]): string {
  const text = JSON.stringify(runs, null, 2);
  return `${text.replaceAll(/\{\s+"value"[^{}]*\}/g, (figure) => figure.replaceAll(/\s+/g, ' '))}\n`;
}
