import type { FigureName } from './figures.ts';

const CONNECTIONS = [8, 64, 256] as const;
type Way = { label: string; color: string; figures: Partial<Record<(typeof CONNECTIONS)[number], FigureName>> };
const WAYS: readonly Way[] = [
  {
    label: 'bare Fastify: token and signature, no database',
    color: '#9aa4b2',
    figures: { 64: 'barePerSecond64', 256: 'barePerSecond256' },
  },
  {
    label: 'Expediter: webhooks, history, order, outbox, durable',
    color: '#0f766e',
    figures: { 8: 'perSecond8', 64: 'perSecond64', 256: 'perSecond256' },
  },
  {
    label: 'one statement and commit per webhook',
    color: '#d97706',
    figures: { 64: 'oneStatementPerSecond64' },
  },
  {
    label: 'five statements in a transaction per webhook',
    color: '#b91c1c',
    figures: { 8: 'naivePerSecond8', 64: 'naivePerSecond64', 256: 'naivePerSecond256' },
  },
];
/** The figures that the chart shows. */
export const CHARTED: ReadonlySet<string> = new Set(WAYS.flatMap(({ figures }) => Object.values<string>(figures)));

const WIDTH = 760;
const LEFT = 130;
const BAR = 16;
const GAP = 22;
const TOP = 34;

/**
 * Draws webhooks a second by connections.
 * @param valueOf returns a measured value; undefined leaves out the bar
 * @returns an SVG for light and dark backgrounds
 */
export function drawBars(valueOf: (figure: FigureName) => number | undefined): string {
  const measured = CONNECTIONS.map((connections) =>
    WAYS.flatMap(({ color, figures }) => {
      const figure = figures[connections];
      const perSecond = figure === undefined ? undefined : valueOf(figure);
      return perSecond === undefined ? [] : [{ color, perSecond }];
    }),
  );
  const most = Math.max(...measured.flat().map(({ perSecond }) => perSecond));
  const scale = (WIDTH - LEFT - 70) / most;
  let y = TOP;
  const groups = measured.map((bars, index) => {
    const middle = y + (bars.length * BAR) / 2 + 4;
    const label = `<text x="${LEFT - 12}" y="${middle}" text-anchor="end">${CONNECTIONS[index]} connections</text>`;
    const drawn = bars.map(({ color, perSecond }) => {
      const width = Math.max(1, perSecond * scale);
      const line =
        `<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="${BAR - 2}" fill="${color}"/>` +
        `<text x="${(LEFT + width + 6).toFixed(1)}" y="${y + 11}">${Math.round(perSecond).toLocaleString('en')}</text>`;
      y += BAR;
      return line;
    });
    y += GAP;
    return [label, ...drawn].join('\n');
  });
  const legend = WAYS.map(({ label, color }, index) => {
    const at = y + index * 18;
    return `<rect x="${LEFT}" y="${at}" width="12" height="12" fill="${color}"/><text x="${LEFT + 20}" y="${at + 10}">${label}</text>`;
  });
  const height = y + WAYS.length * 18 + 8;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Webhooks a second by number of connections" font-family="system-ui, sans-serif" font-size="12" fill="#6b7280">
<text x="${LEFT}" y="18" font-size="14">Webhooks a second</text>
${groups.join('\n')}
${legend.join('\n')}
</svg>
`;
}
