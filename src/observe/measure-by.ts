import { Histogram, type Registry } from 'prom-client';
import { seriesOf, type Labels } from './series-of.ts';

/** Adds one value to the series of these label values. */
export type Measure = (value: number, first?: string, second?: string) => void;

/** A histogram whose series exist from the start, without values. */
export function measureBy(
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
