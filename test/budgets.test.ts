/**
 * The size of the project. Totals are only printed: nearly every change adds lines, so a limit on them would be raised in
 * the commit that exceeds it, and would then be a log. The limits are for what a reader, an operator or the person on call
 * must understand at once. Make it smaller before you raise its limit.
 */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { Visitor, parseSync } from 'vite';
import { CONFIG_NAMES } from '../src/config/config.ts';
import { readAlerts } from '../tools/build/read-alerts.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string): string => readFileSync(`${ROOT}${file}`, 'utf8');
const find = (pattern: string, ...exclude: string[]): string[] =>
  globSync(pattern, { cwd: ROOT, exclude: ['**/node_modules/**', ...exclude] }).filter((path) => /\.\w+$/.test(path));
const linesOf = (text: string): number => text.split('\n').length - 1;
const sum = (numbers: number[]): number => numbers.reduce((all, each) => all + each, 0);

/** @returns the lines of every function in a file, without the callbacks of `describe`, which only group tests */
function functionsIn(file: string): { file: string; start: number; lines: number }[] {
  const text = read(file);
  const groups = new Set<number>();
  const functions: ReturnType<typeof functionsIn> = [];
  const measure = ({ start, end }: { start: number; end: number }): void => {
    if (!groups.has(start)) functions.push({ file, start, lines: linesOf(text.slice(start, end)) + 1 });
  };
  new Visitor({
    CallExpression(call) {
      if (/^describe\b/.test(text.slice(call.start))) for (const { start } of call.arguments) groups.add(start);
    },
    FunctionDeclaration: measure,
    FunctionExpression: measure,
    ArrowFunctionExpression: measure,
  }).visit(parseSync(file, text).program);
  return functions;
}

const source = find('src/**/*.ts');
// Nobody writes a lock file.
const tests = find('test/**', '**/package-lock.json');
const pages = find('**/*.md', 'CHANGELOG.md', '.*/**', 'release/**');
/** The words of each page: by hand, and below the line, where `npm run docs` writes. */
const words = pages.map((file) => {
  const [byHand = '', generated = ''] = read(file).split('<!-- Below this line: npm run docs -->');
  return [byHand, generated].map((text) => text.match(/\S+/g)?.length ?? 0) as [number, number];
});
const functions = find('**/*.{ts,tsx,js,mjs,cjs}', '**/dist/**', '.*/**', 'release/**').flatMap(functionsIn);
const MOST_LINES = 120;

const totals: readonly { of: string; is: number }[] = [
  { of: 'lines in src', is: sum(source.map((file) => linesOf(read(file)))) },
  { of: 'files in src', is: source.length },
  { of: 'functions over 100 lines', is: functions.filter(({ lines }) => lines > 100).length },
  { of: 'lines in test', is: sum(tests.map((file) => linesOf(read(file)))) },
  { of: 'words in pages, written by hand', is: sum(words.map(([byHand]) => byHand)) },
  { of: 'words in pages, generated', is: sum(words.map(([, generated]) => generated)) },
];
const limits: readonly { of: string; is: number; limit: number }[] = [
  { of: 'kB of ARCHITECTURE.md', is: Math.ceil(read('ARCHITECTURE.md').length / 1_000), limit: 12 },
  { of: 'lines in README.md', is: linesOf(read('README.md')), limit: 150 },
  { of: 'environment variables', is: CONFIG_NAMES.length, limit: 59 },
  { of: 'alert rules', is: (await readAlerts()).length, limit: 24 },
];

it('no size of the project exceeds its limit', () => {
  const row = (of: string, is: number): string => `${of.padEnd(38)} ${String(is).padStart(7)}`;
  const table = [
    ...totals.map(({ of, is }) => row(of, is)),
    ...limits.map(({ of, is, limit }) => `${row(of, is)} of at most ${limit}`),
  ];
  process.stdout.write(`${table.join('\n')}\n`);
  expect(limits.filter(({ is, limit }) => is > limit)).toEqual([]);
});

it(`no function is longer than ${MOST_LINES} lines`, () => {
  const tooLong = functions.filter(({ lines }) => lines > MOST_LINES);
  const named = tooLong.map(({ file, start, lines }) => [`${file}:${linesOf(read(file).slice(0, start)) + 1}`, lines]);
  expect(named).toEqual([]);
});

it('every size is above 0', () => {
  expect([...totals, ...limits].filter(({ is }) => !(is > 0))).toEqual([]);
});
