import { duration } from './duration.ts';

/** One row of values in a chart, a value for each of its steps. */
export type Series = {
  name: string;
  /** A CSS variable. */
  colour: string;
  /** Null where there is none, which is a gap. */
  values: readonly (number | null)[];
  /** Told apart by more than its colour. */
  isDashed?: boolean;
};

/** What values are: how many, or how many seconds. */
export type Measure = 'counts' | 'seconds';

const NUMBER = new Intl.NumberFormat();

export function showValue(value: number | null, measure: Measure): string {
  if (value === null) return '–';
  return measure === 'counts' ? NUMBER.format(value) : duration(value * 1_000);
}

/** The steps in which there was anything, newest first, as rows of a table. */
export function tableRows(
  at: readonly string[],
  series: readonly Series[],
): { at: string; values: (number | null)[] }[] {
  return at
    .map((at, nth) => ({ at, values: series.map(({ values }) => values[nth] ?? null) }))
    .filter(({ values }) => values.some((value) => value !== null && value !== 0))
    .toReversed();
}

export function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
