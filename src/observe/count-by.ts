import { Counter, type Registry } from 'prom-client';
import { seriesOf, type Labels } from './series-of.ts';

/** Adds one to the series of these label values. */
export type Count = (first?: string, second?: string, third?: string) => void;

/** A counter that is cheap to increase: the library's counter is set only at a scrape. Every series starts with 0. */
export function countBy(registry: Registry, name: string, help: string, labels: Labels): Count {
  const cells: { values: Record<string, string>; count: number }[] = [];
  const cellOf = seriesOf(labels, (values) => {
    const cell = { values, count: 0 };
    cells.push(cell);
    return cell;
  });
  const counter = new Counter({
    name,
    help,
    labelNames: Object.keys(labels),
    registers: [registry],
    collect() {
      counter.reset();
      for (const { values, count } of cells) counter.inc(values, count);
    },
  });
  return (first, second, third) => {
    const cell = cellOf(first, second, third);
    if (cell !== undefined) cell.count += 1;
  };
}
