import {
  BarController,
  BarElement,
  CategoryScale,
  Chart,
  LineController,
  LineElement,
  LinearScale,
  LogarithmicScale,
  PointElement,
  Tooltip,
  type ChartDataset,
  type ChartOptions,
  type Plugin,
} from 'chart.js';
import { durationTicks, timeTicks } from './chart-ticks.ts';
import { clockTime, soFar } from './clock-time.ts';
import { showValue, type Measure, type Series } from './series.ts';

Chart.register(
  BarController,
  BarElement,
  CategoryScale,
  LineController,
  LineElement,
  LinearScale,
  LogarithmicScale,
  PointElement,
  Tooltip,
);

export type Drawing = {
  show(at: readonly string[], series: readonly Series[]): void;
  /** Shows the values of the step that began then, as if the mouse were there; of none if it is undefined. */
  point(at: string | undefined): void;
  end(): void;
};

type Values = (number | null)[];
type Dataset = ChartDataset<'bar' | 'line', Values>;

/** Draws a chart that is updated in place and follows light and dark mode. */
export function drawChart(canvas: HTMLCanvasElement, measure: Measure): Drawing {
  let series: readonly Series[] = [];
  let steps: readonly string[] = [];
  let pointed: string | undefined;
  let named: ReturnType<typeof timeTicks> = [];
  let durations: number[] = [];

  Chart.defaults.font.family = getComputedStyle(canvas).fontFamily;
  const chart = new Chart<'bar' | 'line', Values, string>(canvas, {
    type: measure === 'counts' ? 'bar' : 'line',
    data: { labels: [], datasets: [] },
    plugins: [CROSSHAIR],
    options: {
      // No animation: a page must not move every ten seconds while it is read.
      animation: false,
      maintainAspectRatio: false,
      interaction: { mode: 'index', intersect: false },
      plugins: {
        tooltip: {
          // Next to the line, so that it hides no value of its step.
          yAlign: 'center',
          callbacks: {
            label: ({ dataset, datasetIndex, dataIndex }) =>
              ` ${dataset.label ?? ''}: ${showValue(series[datasetIndex]?.values[dataIndex] ?? null, measure)}`,
          },
        },
      },
      scales: {
        x: {
          stacked: measure === 'counts',
          grid: { display: false },
          ticks: { maxRotation: 0, autoSkip: false, callback: (_, tick) => clockTime(named[tick]?.at ?? '') },
          afterBuildTicks: (axis) => {
            axis.ticks = named.map(({ nth }) => ({ value: nth }));
          },
        },
        y:
          measure === 'counts'
            ? { stacked: true, beginAtZero: true, suggestedMax: 4, ticks: { precision: 0, maxTicksLimit: 5 } }
            : {
                type: 'logarithmic',
                ticks: { callback: (value) => showValue(Number(value), 'seconds').replace('.0 ', ' ') },
                afterBuildTicks: (axis) => {
                  axis.ticks = durations.map((value) => ({ value }));
                  axis.min = durations[0] ?? axis.min;
                  axis.max = durations.at(-1) ?? axis.max;
                },
              },
      },
    },
  });

  const update = (): void => {
    paint(chart, series);
    // The mode 'none' would leave bars in their old colours.
    chart.update();
    if (pointed !== undefined) point();
  };
  const point = (): void => {
    const index = pointed === undefined ? -1 : steps.indexOf(pointed);
    const active = chart.data.datasets.flatMap(({ data }, datasetIndex) =>
      (data[index] ?? null) === null ? [] : [{ datasetIndex, index }],
    );
    const [first] = active;
    const { x = 0, y = 0 } = first === undefined ? {} : (chart.getDatasetMeta(first.datasetIndex).data[index] ?? {});
    chart.setActiveElements(active);
    chart.tooltip?.setActiveElements(active, { x, y });
    chart.render();
  };
  const dark = matchMedia('(prefers-color-scheme: dark)');
  dark.addEventListener('change', update);

  return {
    show(at, those) {
      steps = at;
      series = those;
      named = timeTicks(at);
      durations = durationTicks(series.flatMap(({ values }) => values));
      const before = chart.data.datasets;
      chart.data.labels = at.map((instant, nth) => (nth === at.length - 1 ? soFar : clockTime)(instant));
      chart.data.datasets = series.map(({ name, values }) => {
        const same = before.find(({ label }) => label === name);
        // Values too small for the axis are drawn at its bottom.
        const least = measure === 'seconds' ? (durations[0] ?? 0) : 0;
        const data = values.map((value) => value && Math.max(value, least));
        return same === undefined ? newDataset(name, data, measure) : Object.assign(same, { data });
      });
      update();
    },
    point(at) {
      pointed = at;
      point();
    },
    end() {
      dark.removeEventListener('change', update);
      chart.destroy();
    },
  };
}

/** A line through the step whose values are shown. */
const CROSSHAIR: Plugin<'bar' | 'line'> = {
  id: 'crosshair',
  afterDatasetsDraw({ ctx, chartArea: { top, bottom }, tooltip, options }) {
    const x = tooltip?.dataPoints?.[0]?.element.x;
    if (x === undefined || tooltip?.opacity === 0) return;
    ctx.save();
    if (typeof options.color === 'string') ctx.strokeStyle = options.color;
    ctx.setLineDash([3, 3]);
    ctx.strokeRect(x, top, 0, bottom - top);
    ctx.restore();
  },
};

function newDataset(label: string, data: Values, measure: Measure): Dataset {
  if (measure === 'counts') return { type: 'bar', label, data, categoryPercentage: 1, barPercentage: 0.85 };
  return {
    type: 'line',
    label,
    data,
    borderWidth: 2,
    // A value between two gaps has no line, so it is drawn as a point.
    pointRadius: ({ dataIndex: nth, dataset }) =>
      (dataset.data[nth - 1] ?? null) === null && (dataset.data[nth + 1] ?? null) === null ? 2 : 0,
  };
}

function paint(chart: Chart<'bar' | 'line', Values, string>, series: readonly Series[]): void {
  const colour = colours(chart.canvas);
  for (const [nth, { colour: name, isDashed = false }] of series.entries()) {
    const dataset = chart.data.datasets[nth];
    if (dataset === undefined) continue;
    const painted = colour(name);
    // The last step has not ended. It is paler, because its low value would look like a drop.
    const pale = `color-mix(in srgb, ${painted} 50%, transparent)`;
    const filled = dataset.data.map((_, step) => (step === dataset.data.length - 1 ? pale : painted));
    Object.assign(dataset, {
      backgroundColor: filled,
      hoverBackgroundColor: filled,
      borderColor: painted,
      pointHoverBackgroundColor: painted,
      pointHoverBorderColor: painted,
      borderDash: isDashed ? [4, 3] : [],
    });
  }
  const options = chart.options as ChartOptions<'bar' | 'line'>;
  options.color = colour('--ink');
  options.borderColor = colour('--line');
  for (const axis of Object.values(options.scales ?? {})) {
    Object.assign(axis?.ticks ?? {}, { color: colour('--faint') });
    Object.assign(axis?.grid ?? {}, { color: colour('--line') });
    Object.assign(axis?.border ?? {}, { color: colour('--line') });
  }
  Object.assign(options.plugins?.tooltip ?? {}, {
    backgroundColor: colour('--ink'),
    titleColor: colour('--sheet'),
    bodyColor: colour('--sheet'),
  });
}

/** Resolves colours for a canvas, which supports neither variables nor `light-dark()`. */
function colours(canvas: HTMLCanvasElement): (name: string) => string {
  const style = getComputedStyle(canvas);
  return (name) => {
    canvas.style.color = `var(${name})`;
    return style.color;
  };
}
