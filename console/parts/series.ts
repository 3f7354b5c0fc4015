import { duration } from './duration.ts';

/** A named row of values in a chart, one per step. */
export type Series = {
  name: string;
  /** A CSS variable. */
  colour: string;
  /** Null is a gap. */
  values: readonly (number | null)[];
  /** Distinguishes the line by more than its colour. */
  isDashed?: boolean;
};

/** The unit of values: counts or seconds. */
export type Measure = 'counts' | 'seconds';

const NUMBER = new Intl.NumberFormat();

export function showValue(value: number | null, measure: Measure): string {
  if (value === null) return '–';
  return measure === 'counts' ? NUMBER.format(value) : duration(value * 1_000);
}

/** The steps with values, newest first, as rows of a table. */
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
