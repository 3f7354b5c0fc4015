import { Gauge, type Registry } from 'prom-client';

/** A gauge that is read at a scrape. Series that `show` does not set do not exist. */
export type GaugeBy = <Label extends string>(
  name: string,
  help: string,
  labelNames: Label[],
  show: (set: (value: number, labels?: Record<Label, string>) => void) => void,
) => void;

export function gaugeBy(registry: Registry): GaugeBy {
  return (name, help, labelNames, show) => {
    const gauge = new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        // Without labels, a reset would leave a 0.
        if (labelNames.length === 0) gauge.remove();
        else gauge.reset();
        show((value, labels) => (labels === undefined ? gauge.set(value) : gauge.set(labels, value)));
      },
    });
  };
}
