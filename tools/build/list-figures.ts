/** Writes the measured figures of tools/bench/report/figures.json as pages show them. */
import { CHARTED, drawBars } from '../bench/report/draw-bars.ts';
import { FIGURES, reaches, type Figure, type FigureName } from '../bench/report/figures.ts';
import { PEER_FIGURES } from '../bench/peers/peer-figures.ts';
import { readRuns, type Recorded, type Run } from '../bench/report/record-figures.ts';
import { PROCESSOR, processorMsAt } from '../../src/cli/plan-installation.ts';

export const KNOWN: Readonly<Record<string, Figure>> = { ...FIGURES, ...PEER_FIGURES };

const ORDER = Object.keys(KNOWN);
const firstOf = ({ figures }: Run): number => Math.min(...Object.keys(figures).map((name) => ORDER.indexOf(name)));

/** The figures by which one sizes an installation. */
const SIZES: readonly FigureName[] = [
  'perSecond64',
  'body20k',
  'sustainedEventsPerSecond',
  'spilledPerSecond',
  'placementsPerSecond',
  'placementP99Ms',
  'liveLagP99Ms',
  'memberStreams',
  'rssMb',
  'yearsVsNone',
];

/** Why an order costs what it does, at these orders a second. */
const LOADS: Readonly<Record<number, string>> = {
  10: 'each webhook is alone in its commit, and each write wakes an idle processor',
  40: 'most webhooks are still alone',
  120: 'webhooks begin to share commits, and the processors sleep less',
};

/** docs/benchmark.md: the ten figures to size by, and the processor time of an order. */
export function sizeReference(): string {
  const runs = readRuns();
  const rows = SIZES.flatMap((name) => {
    const run = runs.find(({ figures }) => Object.hasOwn(figures, name));
    const recorded = run?.figures[name];
    if (run === undefined || recorded === undefined) return [];
    return [`- ${FIGURES[name].what}: **${shown(recorded)}** (\`${run.command}\`, ${run.date})`];
  });
  return [
    '## Figures',
    rows.join('\n'),
    '## What an order costs',
    costs(new Map(runs.flatMap(({ figures }) => Object.entries(figures)))),
  ].join('\n\n');
}

function costs(figures: ReadonlyMap<string, Recorded>): string {
  const valueOf = (name: FigureName): number => figures.get(name)?.value ?? NaN;
  const hours = (msAnOrder: number): string => (msAnOrder / 3.6).toFixed(msAnOrder < 3.6 ? 2 : 1);
  const atLoads = Object.entries(LOADS).map(([load, why]) => {
    const orders = Number(load);
    const ms = processorMsAt(PROCESSOR.node, orders) + processorMsAt(PROCESSOR.postgres, orders);
    return `- **${orders} orders a second: ${hours(ms / orders)}**, because ${why}.`;
  });
  const webhooksUs = 5 * (valueOf('nodeUs64') + valueOf('postgresUs64'));
  return [
    'Processor hours of Node and Postgres for a million orders, each with its ticket, five webhooks and six live ' +
      'messages, by the curves of `expediter plan`. Five measured loads, from 5 to 120 orders a second, differ from these ' +
      `curves by at most ${inPage(valueOf('planDeviation'), '')} of the value; at 40 they had ` +
      `${inPage(valueOf('millionHours'), '')} hours.\n`,
    `- **1 order a second**: not measured. A process without orders takes ${valueOf('idleCpuMs')} ms a second.`,
    ...atLoads,
    `- **Full batches: ${hours(webhooksUs / 1_000)}**, for the five webhooks alone, without ticket and live messages. ` +
      `This holds only near ${inPage(valueOf('perSecond64'), '/s')} webhooks a second.`,
  ].join('\n');
}

/** docs/benchmark-goals.md: the command, the conditions, the figures and goals of each run, in the order of FIGURES. */
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

function bullet(figure: Figure, recorded: Recorded): string {
  return `- ${figure.what}: ${shown(recorded)}${goalOf(figure, recorded.value)}`;
}

function shown({ value, least, most, unit = '' }: Recorded): string {
  const spread = least === undefined || most === undefined ? '' : ` (${inPage(least, unit)}–${inPage(most, unit)})`;
  return `${inPage(value, unit)}${unit === '' || unit === '/s' ? unit : ` ${unit}`}${spread}`;
}

function goalOf(figure: Figure, value: number): string {
  const { goal } = figure;
  if (goal === undefined) return '';
  const bound = 'atLeast' in goal ? `≥ ${goal.atLeast.toLocaleString('en')}` : `≤ ${goal.atMost.toLocaleString('en')}`;
  return `, goal ${bound}${reaches(figure, value) ? '' : ', not reached'}`;
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
