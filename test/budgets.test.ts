/**
 * What the project may weigh, printed and held. Raising a budget needs a reason in the same commit. What shrinks lowers
 * its budget: a row says the figure that this round aims at where that is not reached yet.
 */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { Visitor, parseSync } from 'vite';
import { CONFIG_NAMES } from '../src/server/config.ts';
import { readAlerts } from '../scripts/read-alerts.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string): string => readFileSync(`${ROOT}${file}`, 'utf8');
const find = (pattern: string, ...exclude: string[]): string[] =>
  globSync(pattern, { cwd: ROOT, exclude: ['**/node_modules/**', ...exclude] }).filter((path) => /\.\w+$/.test(path));
const linesOf = (text: string): number => text.split('\n').length - 1;
const sum = (numbers: number[]): number => numbers.reduce((all, each) => all + each, 0);

/** @returns the number of lines of every function in a TypeScript file */
function functionsIn(file: string): number[] {
  const text = read(file);
  const lengths: number[] = [];
  const measure = ({ start, end }: { start: number; end: number }): void =>
    void lengths.push(linesOf(text.slice(start, end)) + 1);
  new Visitor({
    FunctionDeclaration: measure,
    FunctionExpression: measure,
    ArrowFunctionExpression: measure,
  }).visit(parseSync(file, text).program);
  return lengths;
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
const functions = source.flatMap(functionsIn);

const budgets: readonly { measure: string; is: number; budget: number; goal?: number }[] = [
  { measure: 'lines of src', is: sum(source.map((file) => linesOf(read(file)))), budget: 49_136, goal: 31_000 },
  { measure: 'files of src', is: source.length, budget: 375 },
  { measure: 'lines of the longest function', is: Math.max(...functions), budget: 140, goal: 120 },
  { measure: 'functions over 100 lines', is: functions.filter((lines) => lines > 100).length, budget: 5 },
  { measure: 'lines of test', is: sum(tests.map((file) => linesOf(read(file)))), budget: 76_050, goal: 56_000 },
  { measure: 'kB of ARCHITECTURE.md', is: Math.ceil(read('ARCHITECTURE.md').length / 1_000), budget: 12 },
  { measure: 'lines of README.md', is: linesOf(read('README.md')), budget: 150 },
  { measure: 'words of pages, by hand', is: sum(words.map(([byHand]) => byHand)), budget: 51_140 },
  { measure: 'words of pages, generated', is: sum(words.map(([, generated]) => generated)), budget: 14_110 },
  { measure: 'environment variables', is: CONFIG_NAMES.length, budget: 62 },
  { measure: 'alert rules', is: (await readAlerts()).length, budget: 24 },
];

it('nothing is heavier than its budget', () => {
  const table = budgets.map(
    ({ measure, is, budget, goal }) =>
      `${measure.padEnd(30)} ${String(is).padStart(7)} of ${String(budget).padStart(7)}${goal === undefined ? '' : `, to be ${goal}`}`,
  );
  process.stdout.write(`${table.join('\n')}\n`);
  expect(budgets.filter(({ is, budget }) => is > budget)).toEqual([]);
});

it('every figure was found', () => {
  expect(budgets.filter(({ is }) => !(is > 0))).toEqual([]);
});
