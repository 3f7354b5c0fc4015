/** Writes what pages of docs have below their line, and the chart of figures: `npm run docs`. What is above stays. */
import { readFile, writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { z } from 'zod';
import { PAST } from '../src/cli/print.ts';
import { buildProgram } from '../src/cli/program.ts';
import { TAGS } from '../src/http/operator/describe-api.ts';
import { PROBLEMS, typeOf, type ProblemStatus } from '../src/http/operator/problem.ts';
import type { Access, Operation } from '../src/operators/operation.ts';
import { ACCESS, OPERATIONS, publicRoute } from '../src/operators/registry.ts';
import { figureChart, figureReference } from './list-figures.ts';

const LINE = '<!-- Below this line: npm run docs -->';

type Page = { file: string; reference: () => string };
export const PAGES: readonly Page[] = [
  { file: 'cli.md', reference: commandReference },
  { file: 'operator-api.md', reference: apiReference },
  { file: 'benchmark.md', reference: figureReference },
];

/** @returns the page as it should be, from the page as it is */
export function withReference(page: string, { reference }: Page): string {
  return `${page.split(LINE)[0]}${LINE}\n\n${reference()}\n`;
}

function commandReference(): string {
  const program = buildProgram();
  return program.commands.flatMap((each) => sectionsOf(each, `expediter ${each.name()}`, '##')).join('\n\n');
}

function sectionsOf(command: Command, path: string, level: string): string[] {
  const isGroup = command.commands.length > 0;
  const about = sentence(command.description());
  const fields = [
    ...command.registeredArguments.map((each) =>
      bullet(each.required ? `<${each.name()}>` : `[${each.name()}]`, false, each.description),
    ),
    ...command.options.map(({ flags, mandatory, description, argChoices }) =>
      bullet(flags, mandatory, description.replace(`: ${PAST}`, ''), argChoices),
    ),
  ];
  const [, more = '', examples = ''] =
    /^(?:.*\nCommands:\n.*?\n(?=\n))?(.*?)\nExamples:\n(.*)$/s.exec(helpAfter(command)) ?? [];
  const block = isGroup ? '' : `\`\`\`sh\n${examples.replaceAll(/^ {2}\$ /gm, '').trim()}\n\`\`\``;
  const own = [`${level} \`${path}\``, about, fields.join('\n'), linked(more.trim()), block];
  return [
    ...own.filter((part) => part !== ''),
    ...command.commands.flatMap((each) => sectionsOf(each, `${path} ${each.name()}`, '###')),
  ];
}

/** The text below the options in a command's help. */
function helpAfter(command: Command): string {
  let text = '';
  command.configureOutput({ writeOut: (words) => (text += words) }).outputHelp();
  return text.slice(text.indexOf('Global Options:')).replace(/^.*?\n\n/s, '\n');
}

function apiReference(): string {
  const ofTags = TAGS.flatMap(({ name, description }) => {
    const routes = OPERATIONS.flatMap((each) => (each.api?.tag === name ? [routeOf(each)] : []));
    return routes.length === 0 ? [] : [`## ${name}`, description, ...routes];
  });
  const own = new Set(OPERATIONS.map(({ api }) => api?.route as string | undefined));
  const others = Object.entries(ACCESS).filter(([route]) => !own.has(route));
  const rows = others.map(([route, access]) => `- \`${publicRoute(route)}\`: ${accessInWords(access)}`);
  const problems = Object.entries(PROBLEMS).map(
    ([status, { title, about }]) =>
      `- \`${status}\`, \`${typeOf(Number(status) as ProblemStatus)}\`, ${title}: ${about}`,
  );
  return [
    ...ofTags,
    '## Streams, and what programs read',
    rows.join('\n'),
    '## Types of problems',
    problems.join('\n'),
  ].join('\n\n');
}

function routeOf(operation: Operation): string {
  const { api, query, body } = operation;
  if (api === undefined) return '';
  const fields = [...fieldsOf(query), ...fieldsOf(body)];
  const examples =
    body === undefined ? [] : ((body.meta()?.examples ?? []) as unknown[]).map((each) => `\`${JSON.stringify(each)}\``);
  return [
    `### \`${publicRoute(api.route)}\``,
    linked(`${sentence(api.summary)} ${api.description}`),
    `Needs ${accessInWords(operation)}.${fields.length > 0 ? ' Fields:' : ''}`,
    fields.join('\n'),
    examples.length === 0 ? '' : `Such as ${examples.join(', ')}.`,
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

function accessInWords({ role, of, reveals }: Access): string {
  return `\`${role}\`, of \`${of}\`${reveals === undefined ? '' : '; with member data `member-data` as well'}`;
}

type Json = { properties?: Record<string, Json>; required?: string[]; description?: string; enum?: string[] };
const jsonOf = (shape: z.ZodType): Json =>
  z.toJSONSchema(shape, { io: 'input', unrepresentable: 'any' }) as unknown as Json;

function fieldsOf(shape: z.ZodType | undefined): string[] {
  const { properties = {}, required = [] } = shape === undefined ? {} : jsonOf(shape);
  return Object.entries(properties).map(([name, { description = '', enum: choices }]) =>
    bullet(name, required.includes(name), description, choices),
  );
}

function bullet(name: string, isRequired: boolean, about: string, choices?: readonly string[]): string {
  const of = choices === undefined ? '' : `: ${choices.map((each) => `\`${each}\``).join(', ')}`;
  return `- \`${name}\`${isRequired ? ', required' : ''}: ${about}${of}`.replace(/: : /, ': ').replace(/\.(: `)/, '$1');
}

function sentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
}

/** Makes links of the pages that a text names. */
function linked(text: string): string {
  return text.replaceAll(/docs\/([\w-]+)\.md(#[\w-]+)?/g, '[$1]($1.md$2)');
}

if (import.meta.main) {
  for (const page of PAGES) {
    const url = new URL(`../docs/${page.file}`, import.meta.url);
    await writeFile(url, withReference(await readFile(url, 'utf8'), page));
  }
  await writeFile(new URL('../docs/benchmark.svg', import.meta.url), figureChart());
}
