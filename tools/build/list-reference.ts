/** The part of docs/reference.md about alerts, metrics, codes of causes and tables of the database. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Registry } from 'prom-client';
import { z } from 'zod';
import { describeCause } from '../../src/core/domain/explain-cause.ts';
import { LocationCause } from '../../src/core/domain/location-cause.ts';
import { CONSEQUENCES, HAPPENINGS, PLACEMENT_LIFE, PLACEMENT_STATES } from '../../src/core/domain/placement.ts';
import { PlacementCause } from '../../src/core/domain/placement-cause.ts';
import { REASONS } from '../../src/core/domain/reason-code.ts';
import { DropCause, ReplayCause } from '../../src/core/domain/webhook-cause.ts';
import { RIGHTS } from '../../src/database/grant-rights.ts';
import { createMetrics } from '../../src/observe/create-metrics.ts';
import { readAlerts } from './read-alerts.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const filesOf = (pattern: string): { file: string; text: string }[] =>
  globSync(pattern, { cwd: PROJECT })
    .toSorted()
    .map((file) => ({ file, text: readFileSync(`${PROJECT}${file}`, 'utf8') }));

const ALERTS = await readAlerts();

export function codeReference(): string {
  return [
    '## Alerts',
    ...listAlerts('page'),
    ...listAlerts('ticket'),
    '## Metrics',
    ...listMetrics(),
    '## States of a placement',
    lifeOfPlacements(),
    '## Causes',
    '### Placements and cancellations',
    listCauses(PlacementCause.options.filter((option) => !isOfLocation(option))),
    '### Locations, placements and replays',
    listCauses(LocationCause.options),
    '### Dropped webhooks',
    listCauses(DropCause.options),
    '### Refused replays',
    listCauses(ReplayCause.options.filter((option) => !isOfLocation(option))),
    '### Reasons for members',
    list(Object.entries(REASONS)),
    '## Tables',
    ...listTables(),
  ].join('\n\n');
}

function lifeOfPlacements(): string {
  const rows = [
    ['state', ...HAPPENINGS],
    ...PLACEMENT_STATES.map((state) => [`\`${state}\``, ...HAPPENINGS.map((each) => PLACEMENT_LIFE[state][each])]),
  ];
  const widths = (rows[0] ?? []).map((_, nth) => Math.max(...rows.map((row) => (row[nth] ?? '').length)));
  const [head, ...body] = rows.map((row) => `| ${row.map((cell, nth) => cell.padEnd(widths[nth] ?? 0)).join(' | ')} |`);
  const line = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  return [
    'What follows for an order that the platform cancels, changes or moves to another location, that is late because its',
    'deadline passes, or that its POS reports:',
    '',
    head,
    line,
    ...body,
    '',
    list(Object.entries(CONSEQUENCES)),
  ].join('\n');
}

const heading = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`;

const list = (lines: (readonly [name: string, about: string])[]): string =>
  lines.map(([name, about]) => `- \`${name}\`: ${about.replace(/[.:] ?$/, '')}`).join('\n');

function listAlerts(severity: 'page' | 'ticket'): string[] {
  const lines = ALERTS.filter(({ labels }) => labels.severity === severity).map(({ alert, annotations }) => {
    const summary = annotations.summary
      .replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '{$1}')
      .replaceAll(/\{\{ \$value \| humanizePercentage \}\}/g, 'N %')
      .replaceAll(/\{\{ \$value.*?\}\}/g, 'N');
    return `- [${alert}](${annotations.runbook_url.replace('docs/', '')}): ${summary}`;
  });
  return [`### ${heading(severity)}`, lines.join('\n')];
}

const PREFIX = 'expediter_';

type Metric = { name: string; help: string; type: string; labelNames: string[] };

/** The service's metrics, as a process with a spill registers them. */
function listMetrics(): string[] {
  const registry = new Registry();
  // Values are read only at a scrape. There is no scrape here, so nothing may be read.
  const unread = (): never => {
    throw new Error('a metric was read');
  };
  const pool = { totalCount: 0, idleCount: 0, waitingCount: 0 };
  createMetrics(
    {
      integrations: [],
      version: '',
      now: unread,
      pools: { main: pool, flush: pool },
      readiness: unread,
      spill: unread,
      breakers: unread,
      connections: unread,
      droppedLines: unread,
    },
    registry,
  );
  // The library's types leave out the labels.
  const metrics = (registry.getMetricsAsArray() as unknown as Metric[]).filter(({ name }) => name.startsWith(PREFIX));
  const lineOf = ({ name, help, labelNames }: Metric): [string, string] => {
    const labels = labelNames.length === 0 ? '' : `{${labelNames.join(',')}}`;
    // Removes the words that only repeat a label.
    return [`${name.replace(PREFIX, '')}${labels}`, help.replace(/,? by (outcome|cause|reason)\b/, '')];
  };
  return [...Map.groupBy(metrics, ({ type }) => type)].flatMap(([type, each]) => [
    `### ${heading(type)}s`,
    list(each.map(lineOf)),
  ]);
}

type Option = z.ZodObject<{ code: z.ZodLiteral<string> }>;
type Described = Parameters<typeof describeCause>[0];

const isOfLocation = (option: Option): boolean =>
  LocationCause.options.some(({ shape }) => shape.code.value === option.shape.code.value);

/** Lists each code with its schema's description. Without one, with the sentence that is stored with orders. */
function listCauses(options: readonly Option[]): string {
  return list(
    options.map((option) => [option.shape.code.value, option.description ?? describeCause(exampleOf(option))]),
  );
}

/** Makes an example of a cause, with `…` for each required detail. */
function exampleOf({ shape }: Option): Described {
  const details = Object.entries<z.ZodType>(shape).flatMap(([name, schema]) =>
    schema instanceof z.ZodOptional ? [] : [[name, schema instanceof z.ZodArray ? [] : '…']],
  );
  return { ...Object.fromEntries(details), code: shape.code.value } as Described;
}

/** Groups the tables by the modules of core that insert rows, or, if none does, that update rows. */
function listTables(): string[] {
  const code = filesOf('src/core/*/**/*.ts').map(({ file, text }) => ({ module: file.split('/')[2] ?? '', text }));
  const migrations = filesOf('migrations/*.sql')
    .map(({ text }) => text)
    .join('\n');
  const byModule = Map.groupBy(Object.keys(RIGHTS), (table) => {
    const modulesThat = (verb: string): string[] => {
      const statement = new RegExp(`\\b${verb} ${table}\\b`);
      // One statement may be used for two similar tables, with the name of the table as a variable.
      const named = (text: string): string => (text.includes(`'${table}'`) ? text.replaceAll('${table}', table) : text);
      return [...new Set(code.filter(({ text }) => statement.test(named(text))).map(({ module }) => module))];
    };
    const modules = [modulesThat('INSERT INTO'), modulesThat('UPDATE')].find(({ length }) => length > 0) ?? [];
    return modules.map((module) => `\`core/${module}\``).join(', ') || '`expediter migrate`';
  });
  return [...byModule].flatMap(([modules, tables]) => [
    `### ${modules}`,
    list(tables.map((table) => [table, purposeOf(table, migrations)])),
  ]);
}

/** The first sentence above a table in its migration. */
function purposeOf(table: string, migrations: string): string {
  // The library for migrations creates this table.
  if (table === 'schema_migrations') return 'Migrations that have run';
  const [, comment = ''] = new RegExp(`((?:^-- .*\\n)+)CREATE TABLE ${table} `, 'm').exec(migrations) ?? [];
  const [, sentence] = /^(.+?)\.(?: |$)/.exec(comment.replaceAll(/^-- /gm, '').replaceAll('\n', ' ')) ?? [];
  if (sentence === undefined) throw new Error(`${table}: its migration has no sentence above CREATE TABLE`);
  return sentence;
}
