/** Writes the measured figures of tools/bench/report/figures.json as docs/benchmark.md and other pages show them. */
import { CHARTED, drawBars } from '../bench/report/draw-bars.ts';
import { FIGURES, reaches, type Figure } from '../bench/report/figures.ts';
import { PEER_FIGURES } from '../bench/peers/peer-figures.ts';
import { readRuns, type Recorded, type Run } from '../bench/report/record-figures.ts';

export const KNOWN: Readonly<Record<string, Figure>> = { ...FIGURES, ...PEER_FIGURES };

const ORDER = Object.keys(KNOWN);
const firstOf = ({ figures }: Run): number => Math.min(...Object.keys(figures).map((name) => ORDER.indexOf(name)));

/** The command, the conditions and the figures of each run, in the order of FIGURES. Charted figures are left out. */
export function figureReference(): string {
  let machine = '';
  const sections = readRuns()
    .toSorted((a, b) => firstOf(a) - firstOf(b))
    .flatMap((run) => {
      const conditions = [run.machine === machine ? '' : `${run.machine}.`, run.note ?? ''];
      machine = run.machine;
      const measured = Object.entries(KNOWN).flatMap(([name, figure]) => {
        const recorded = run.figures[name];
        return recorded === undefined || CHARTED.has(name) ? [] : [bullet(figure, recorded)];
      });
      return [`### ${run.date}, \`${run.command}\``, conditions.join(' ').trim(), measured.join('\n')];
    });
  return ['## Figures', ...sections].filter((part) => part !== '').join('\n\n');
}

function bullet(figure: Figure, { value, least, most, unit = '' }: Recorded): string {
  const spread = least === undefined || most === undefined ? '' : ` (${inPage(least, unit)}–${inPage(most, unit)})`;
  const shown = `${inPage(value, unit)}${unit === '' || unit === '/s' ? unit : ` ${unit}`}`;
  return `- ${figure.what}: ${shown}${spread}${goalOf(figure, value)}`;
}

function goalOf(figure: Figure, value: number): string {
  const { goal } = figure;
  if (goal === undefined) return '';
  const bound = 'atLeast' in goal ? `≥ ${goal.atLeast.toLocaleString('en')}` : `≤ ${goal.atMost.toLocaleString('en')}`;
  return `, goal ${bound}${reaches(figure, value) ? '' : ', **missed**'}`;
}

/** The numbers that a page may quote, by the figure's name: `vsNaive64`, `vsNaive64.least` and `vsNaive64.most`. */
export function quotable(): Map<string, string> {
  const all = readRuns().flatMap(({ figures }) => Object.entries(figures));
  return new Map(
    all.flatMap(([name, { value, least, most, unit = '' }]): [string, string][] => [
      [name, inPage(value, unit)],
      ...(least === undefined ? [] : [[`${name}.least`, inPage(least, unit)] as [string, string]]),
      ...(most === undefined ? [] : [[`${name}.most`, inPage(most, unit)] as [string, string]]),
    ]),
  );
}

/** Formats a number as pages show it: `2,625`, `0.40`, and `5` with a unit. */
function inPage(value: number, unit: string): string {
  if (Math.abs(value) >= 100) return value.toLocaleString('en');
  return unit === '' ? value.toFixed(2) : String(value);
}

/** @returns docs/benchmark.svg */
export function figureChart(): string {
  const all = new Map(readRuns().flatMap(({ figures }) => Object.entries(figures)));
  return drawBars((name) => all.get(name)?.value);
}
