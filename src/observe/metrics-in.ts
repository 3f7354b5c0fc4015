import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { UNKNOWN, type Count, type GaugeBy, type Labels, type MakeMetrics, type Measure } from './event.ts';

/** Makes metrics in this registry. Counters and histograms get the prefix `expediter_`. Gauges get no prefix. */
export function metricsIn(registry: Registry): Pick<MakeMetrics, 'counter' | 'countEach' | 'histogram' | 'gauge'> {
  const counters = new Map<string, Count>();
  const counter = (name: string, help: string, labels: Labels): Count => {
    const count = counters.get(name) ?? countBy(registry, `expediter_${name}`, help, labels);
    counters.set(name, count);
    return count;
  };
  return {
    counter,
    countEach<Label extends string>(name: string, help: string, labels: Record<Label, readonly string[]>) {
      const count = counter(name, help, labels);
      const [first, second, third] = Object.keys(labels) as Label[];
      return (observed: Record<Label, string | null>) => {
        const value = (label: Label | undefined) => label && (observed[label] ?? UNKNOWN);
        count(value(first), value(second), value(third));
      };
    },
    histogram: (name, help, buckets, labels) =>
      measureBy(registry, { name: `expediter_${name}`, help, buckets, labels }),
    gauge: gaugeBy(registry),
  };
}

/** Makes a counter that is cheap to increase: the library's counter is set only at a scrape. All series start at 0. */
function countBy(registry: Registry, name: string, help: string, labels: Labels): Count {
  const cells: { values: Record<string, string>; count: number }[] = [];
  const cellOf = seriesOf(labels, (values) => {
    const cell = { values, count: 0 };
    cells.push(cell);
    return cell;
  });
  counterIn(registry, name, help, Object.keys(labels), (inc) => {
    for (const { values, count } of cells) inc(values, count);
  });
  return (first, second, third) => {
    const cell = cellOf(first, second, third);
    if (cell !== undefined) cell.count += 1;
  };
}

/** Makes a counter that is set only at a scrape: `show` gives the present count of each series. */
export function counterIn<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: Label[],
  show: (inc: (labels: Record<Label, string>, count: number) => void) => void,
): void {
  const collect = (): void => {
    counter.reset();
    show((labels, count) => counter.inc(labels, count));
  };
  const counter = new Counter({ name, help, labelNames, registers: [registry], collect });
}

/** Makes a histogram whose series all exist from the start, with 0 observations. */
function measureBy(
  registry: Registry,
  about: { name: string; help: string; buckets: number[]; labels: Labels },
): Measure {
  const { name, help, buckets, labels } = about;
  const histogram = new Histogram({ name, help, buckets, labelNames: Object.keys(labels), registers: [registry] });
  const seriesFor = seriesOf(labels, (values) => {
    histogram.zero(values);
    return histogram.labels(values);
  });
  return (value, first, second) => seriesFor(first, second)?.observe(value);
}

function gaugeBy(registry: Registry): GaugeBy {
  return (name, help, labelNames, show) => {
    const gauge = new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        // Without labels, `reset` would leave a series with the value 0.
        if (labelNames.length === 0) gauge.remove();
        else gauge.reset();
        show((value, labels) => (labels === undefined ? gauge.set(value) : gauge.set(labels, value)));
      },
    });
  };
}

/** Finds the series of these label values. A value that is not in the list counts as `unknown`. */
type FindSeries<Series> = (first?: string, second?: string, third?: string) => Series | undefined;

/** Makes the series of all combinations of values in advance, so that finding a series is one look-up in a map. */
function seriesOf<Series>(labels: Labels, make: (values: Record<string, string>) => Series): FindSeries<Series> {
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
