/** The label value that stands for any unknown one, so that a label has few values. */
export const UNKNOWN = 'unknown';

/** The possible values of each label, in the order of the arguments. At most three labels. */
export type Labels = Record<string, readonly string[]>;

/** Finds the series of these values. Undefined if there is none, not even for `unknown`. */
export type FindSeries<Series> = (first?: string, second?: string, third?: string) => Series | undefined;

/** Makes a series for every combination of values in advance: finding one costs one look-up in a map. */
export function seriesOf<Series>(labels: Labels, make: (values: Record<string, string>) => Series): FindSeries<Series> {
  const names = Object.keys(labels);
  const lists = Object.values(labels);
  let combinations: string[][] = [[]];
  for (const list of lists) combinations = combinations.flatMap((before) => list.map((value) => [...before, value]));
  const series = new Map(
    combinations.map((values) => {
      const [first = '', second = '', third = ''] = values;
      return [
        keyOf(first, second, third),
        make(Object.fromEntries(names.map((name, nth) => [name, values[nth] ?? '']))),
      ];
    }),
  );
  const known = (value: string, nth: number): string => {
    const list = lists[nth];
    return list === undefined || list.includes(value) ? value : UNKNOWN;
  };
  return (first = '', second = '', third = '') =>
    series.get(keyOf(first, second, third)) ?? series.get(keyOf(known(first, 0), known(second, 1), known(third, 2)));
}

function keyOf(first: string, second: string, third: string): string {
  return `${first} ${second} ${third}`;
}
