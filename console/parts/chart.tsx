import { useEffect, useRef, useState } from 'preact/hooks';
import './chart.css';
import { clockTime, soFar } from './clock-time.ts';
import { drawChart, type Drawing } from './draw-chart.ts';
import { showValue, tableRows, type Measure, type Series } from './series.ts';
import { Heads } from './heads.tsx';

/**
 * Values over time with a summary and a table: counts as stacked bars, durations as lines on a logarithmic axis. New
 * values reuse the drawing, without animation.
 * @param chart.at the beginning of each step; the last step has not ended
 */
export function Chart({ title, summary, measure, at, series }: Shown & { summary: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawing = useRef<Drawing | undefined>(undefined);
  useEffect(() => {
    if (canvas.current !== null) drawing.current = drawChart(canvas.current, measure);
    return () => drawing.current?.end();
  }, [measure]);
  useEffect(() => drawing.current?.show(at, series), [measure, at, series]);
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <p>{summary}</p>
      </figcaption>
      <div class="chart-drawing">
        <canvas ref={canvas} aria-hidden="true" />
        <Cursor title={title} measure={measure} at={at} series={series} onPoint={(at) => drawing.current?.point(at)} />
      </div>
      <ul class="chart-legend" aria-hidden="true">
        {series.map(({ name, colour, isDashed = false }) => (
          <li key={name}>
            <span
              class={`chart-mark ${measure === 'seconds' ? 'line' : ''} ${isDashed ? 'dashed' : ''}`}
              style={{ color: `var(${colour})` }}
            />
            {name}
          </li>
        ))}
      </ul>
      <AsTable title={title} measure={measure} at={at} series={series} />
    </figure>
  );
}

type Shown = { title: string; measure: Measure; at: readonly string[]; series: readonly Series[] };

/** A slider over the steps, by which the keyboard reads the values. The mouse uses the drawing below it. */
function Cursor({ title, measure, at, series, onPoint }: Shown & { onPoint: (at: string | undefined) => void }) {
  const [chosen, setChosen] = useState<string>();
  const last = at.length - 1;
  const found = at.indexOf(chosen ?? '');
  const nth = found < 0 ? last : found;
  const values = series.map(({ name, values }) => `${name} ${showValue(values[nth] ?? null, measure)}`);
  const point = (nth: number): void => {
    setChosen(at[nth]);
    onPoint(at[nth]);
  };
  return (
    <input
      type="range"
      class="chart-cursor"
      aria-label={`${title}: values at a time`}
      aria-valuetext={[(nth === last ? soFar : clockTime)(at[nth] ?? ''), ...values].join(', ')}
      max={last}
      value={nth}
      onInput={(event) => point(event.currentTarget.valueAsNumber)}
      onFocus={() => point(nth)}
      onBlur={() => onPoint(undefined)}
    />
  );
}

function AsTable({ title, measure, at, series }: Shown) {
  // Hundreds of rows are rendered only when they are shown.
  const [isOpen, setOpen] = useState(false);
  const rows = isOpen ? tableRows(at, series) : [];
  const last = at.at(-1);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        As a table<span class="unseen">: {title}</span>
      </summary>
      {isOpen && (
        <section
          class="chart-table"
          aria-label={`${title}, as a table`}
          // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- scrolling needs the keyboard
          tabIndex={0}
        >
          <table>
            <Heads of={['From', ...series.map(({ name }) => name)]} />
            <tbody>
              {rows.map(({ at, values }) => (
                <tr key={at}>
                  <th scope="row">{at === last ? soFar(at) : clockTime(at)}</th>
                  {values.map((value, nth) => (
                    <td key={series[nth]?.name}>{showValue(value, measure)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
          <p class="faint">{rows.length === 0 ? 'No values.' : 'Newest first. Steps without values are left out.'}</p>
        </section>
      )}
    </details>
  );
}
