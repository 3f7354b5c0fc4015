/**
 * `npm run docs`: writes the generated part of pages in docs and of .env.example, which is below a marked line, the chart
 * of figures, and docs/openapi.json. The text above the line stays.
 */
import { readFile, writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import fastify, { type RouteOptions } from 'fastify';
import { z } from 'zod';
import { PAST } from '../../src/terminal/print.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { bearerAuth } from '../../src/http/operator/bearer-auth.ts';
import { TAGS, describeApi as describeRoutes, sectionOf } from '../../src/http/operator/describe-api.ts';
import { mountRoutes } from '../../src/http/operator/mount-routes.ts';
import type { OperatorDeps } from '../../src/http/operator/operator-deps.ts';
import { PROBLEMS, typeOf, type ProblemStatus } from '../../src/http/problem.ts';
import { describeApi, type Access, type Operation } from '../../src/operators/operation.ts';
import { ACCESS, API_PATH, FOR_PROGRAMS, OPERATIONS } from '../../src/operators/registry.ts';
import { figureChart, figureReference, sizeReference } from './list-figures.ts';
import { codeReference } from './list-reference.ts';
import { SECRETS, VARIABLES, WrongEnvironment, readConfig, type Config } from '../../src/config/config.ts';

type Page = { file: string; line?: string; reference: () => string };
export const PAGES: readonly Page[] = [
  { file: 'docs/cli.md', reference: commandReference },
  { file: 'docs/operator-api.md', reference: apiReference },
  { file: 'docs/configuration.md', reference: variableReference },
  { file: 'docs/benchmark.md', reference: sizeReference },
  { file: 'docs/benchmark-goals.md', reference: figureReference },
  { file: 'docs/reference.md', reference: codeReference },
  { file: '.env.example', line: '# Below this line: npm run docs', reference: exampleEnvironment },
];

/** @param page the current page @returns the page with a new generated part */
export function withReference(
  page: string,
  { line = '<!-- Below this line: npm run docs -->', reference }: Page,
): string {
  return `${page.split(line)[0]}${line}\n\n${reference()}\n`;
}

/** @returns docs/openapi.json: what the service answers to `GET /openapi.json` */
export async function openapi(): Promise<object> {
  const app = fastify();
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD') routes.push(route);
  });
  // No request is answered, so nothing else is needed.
  const deps = { translating: {} } as OperatorDeps;
  await app.register((scope) => bearerAuth(scope, deps, () => {}, mountRoutes(app, deps)));
  await app.ready();
  await app.close();
  return describeRoutes(routes);
}

/** The headings of the sections of variables, by the first variable of each section. */
const SECTIONS: { [Name in keyof Config]?: string } = {
  DATABASE_URL: 'Postgres',
  HOST: 'The process',
  ORDER_API_URL: 'The ordering platform: docs/connect-your-platform.md',
  STATUS_WEBHOOK_URL: 'Live messages by webhook: docs/connect-your-platform.md',
  GOOGLE_CLOUD_PROJECT: 'Google Pub/Sub',
  FOLLOW_TOKEN_KEYS: 'Members who follow an order: docs/live-to-members.md',
  SETTINGS_KEY: 'Locations and POS systems',
  SMTP_URL: 'Messages to restaurants: docs/notify-restaurants.md',
  OPERATOR_TOKEN: 'Operators: docs/operators.md',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'Traces: docs/tracing.md',
  WEBHOOK_BODY_LIMIT: 'Limits',
  PLACEMENT_DEADLINE_S: 'Time limits of orders',
  REFUSED_KEEP: 'Retention: docs/retention.md',
};

function variableReference(): string {
  return bySection(({ name, about, value, notes }) => {
    const inBrackets = [...notes, ...(value === undefined ? [] : [`\`${value}\``])];
    return `- \`${name}\`${inBrackets.length > 0 ? ` (${inBrackets.join(', ')})` : ''}: ${linked(about)}.`;
  }, linked);
}

function exampleEnvironment(): string {
  return bySection(({ name, about, value, example, notes }) => {
    // An example with <…> cannot be used as it is.
    const isSet = notes.includes('required') && !example.includes('<');
    const words = `${sentence(about)}${notes.includes('secret') ? ' Secret.' : ''}`;
    return `# ${words}\n${isSet ? '' : '# '}${name}=${value ?? example.split('<', 1)[0]}`;
  }, String);
}

type Described = {
  name: string;
  about: string;
  example: string;
  /** The default, if it is a text or a number. */
  value: string | undefined;
  notes: ('required' | 'secret')[];
};

/** @returns the text of all variables, each under the heading of its section */
function bySection(one: (variable: Described) => string, title: (text: string) => string): string {
  const required = missingVariables();
  const secrets: readonly string[] = SECRETS;
  return (Object.keys(VARIABLES) as (keyof Config)[])
    .flatMap((name) => {
      const [schema, about, example = ''] = VARIABLES[name] as readonly [z.ZodType, string, string?];
      const unset = schema.safeParse(undefined).data;
      const section = SECTIONS[name];
      return [
        ...(section === undefined ? [] : [`\n## ${title(section)}\n`]),
        one({
          name,
          about,
          example,
          value: typeof unset === 'string' || typeof unset === 'number' ? String(unset) : undefined,
          notes: [
            ...(required.has(name) ? (['required'] as const) : []),
            ...(secrets.includes(name) ? (['secret'] as const) : []),
          ],
        }),
      ];
    })
    .join('\n')
    .trim();
}

/** @returns the required variables: those that a start without an environment reports as missing */
function missingVariables(): ReadonlySet<string> {
  try {
    readConfig({});
    return new Set();
  } catch (error) {
    if (!(error instanceof WrongEnvironment)) throw error;
    return new Set([...error.message.matchAll(/^ {2}(\w+): is required/gm)].map(([, name = '']) => name));
  }
}

function commandReference(): string {
  const program = buildProgram();
  return visibleIn(program)
    .flatMap((each) => sectionsOf(each, `expediter ${each.name()}`, '##'))
    .join('\n\n');
}

function visibleIn(command: Command): Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== 'help');
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
    ...visibleIn(command).flatMap((each) => sectionsOf(each, `${path} ${each.name()}`, '###')),
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
    const routes = OPERATIONS.flatMap((each) => (sectionOf(each.api.route) === name ? [routeOf(each)] : []));
    return routes.length === 0 ? [] : [`## ${name}`, description, ...routes];
  });
  const own = new Set(OPERATIONS.map(({ api }) => api.route as string));
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
  const fields = [...fieldsOf(query), ...fieldsOf(body)];
  const examples =
    body === undefined ? [] : ((body.meta()?.examples ?? []) as unknown[]).map((each) => `\`${JSON.stringify(each)}\``);
  return [
    `### \`${publicRoute(api.route)}\``,
    linked(`${sentence(api.summary)} ${describeApi(api)}`),
    `Needs ${accessInWords(operation.access)}.${fields.length > 0 ? ' Fields:' : ''}`,
    fields.join('\n'),
    examples.length === 0 ? '' : `Such as ${examples.join(', ')}.`,
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** @returns method and path of a route with the prefix that programs use */
function publicRoute(route: string): string {
  return Object.hasOwn(FOR_PROGRAMS, route) ? route : route.replace(' ', ` ${API_PATH}`);
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

/** Replaces the names of pages in a text by links. */
function linked(text: string): string {
  return text.replaceAll(/docs\/([\w-]+)\.md(#[\w-]+)?/g, '[$1]($1.md$2)');
}

if (import.meta.main) {
  for (const page of PAGES) {
    const url = new URL(`../../${page.file}`, import.meta.url);
    await writeFile(url, withReference(await readFile(url, 'utf8'), page));
  }
  await writeFile(new URL('../../docs/benchmark.svg', import.meta.url), figureChart());
  await writeFile(new URL('../../docs/openapi.json', import.meta.url), JSON.stringify(await openapi()));
}
