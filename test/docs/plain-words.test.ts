/** The words of CONTRIBUTING's "English" that comments, pages and titles of tests do not use. */
import { globSync } from 'node:fs';
import { expect, it } from 'vitest';
import { read, ROOT } from '../support/read-project.ts';

const SOURCES = '{src,console,packages,test,world,tools,deploy,examples}/**/*.{ts,tsx,js,css,sh,yaml}';
const TESTS = '{test,packages}/**/*.{ts,tsx}';
const INSTEAD = {
  anew: 'again',
  beside: 'next to',
  'by (itself|themselves)': 'automatically',
  'mend(s|ed|ing)?': 'fix',
  'now and then': 'periodically',
  'of which nothing': 'without any',
  whoever: 'the one who',
};
/** Titles use none of these either. */
const INSTEAD_IN_TITLES = {
  ...INSTEAD,
  'for good': 'permanently',
  'go(es)? on': 'continue',
  'leaves? .+ to us': 'needs an operator',
  'nobody there': 'nothing listens',
  surely: 'certainly',
  told: 'notified, reported or shown',
};

const find = (pattern: string): string[] => globSync(pattern, { cwd: ROOT, exclude: ['**/node_modules/**'] });
/** A page without its code. */
const prose = (text: string): string => text.replaceAll(/```.*?```/gs, '').replaceAll(/`[^`]*`/g, '');
const comments = (text: string): string => text.match(/(?:^|\s)(?:\/\/|#) [^\n]*|\/\*.*?\*\//gs)?.join('\n') ?? '';
/** Texts of several words before a function, as in `it('does this', async () => …)`. */
const titles = (text: string): string =>
  Array.from(text.matchAll(/(['"`])((?:(?!\1).)+ (?:(?!\1).)+)\1,\s+(?:async )?\(/g), ([, , title]) => title).join(
    '\n',
  );

const expectNone = (texts: (readonly [file: string, text: string])[], word: string, instead: string): void => {
  const wrong = new RegExp(`.*\\b${word}\\b.*`, 'gi');
  expect(
    texts.flatMap(([file, text]) => (text.match(wrong) ?? []).map((line) => `${file}: ${line}`)),
    instead,
  ).toEqual([]);
};

it.each(Object.entries(INSTEAD))('no comment and no page says "%s" instead of "%s"', (word, instead) => {
  const texts = [
    ...find('{*.md,docs/**/*.md,deploy/**/*.md,migrations/*.md,examples/**/*.md}').map(
      (file) => [file, prose(read(file))] as const,
    ),
    ...find(SOURCES).map((file) => [file, comments(read(file))] as const),
  ];
  expect(texts.length).toBeGreaterThan(1_000);
  expectNone(texts, word, instead);
});

it.each(Object.entries(INSTEAD_IN_TITLES))('no title of a test says "%s" instead of "%s"', (word, instead) => {
  const texts = find(TESTS).map((file) => [file, titles(read(file))] as const);
  expect(texts.flatMap(([, text]) => text.split('\n')).length).toBeGreaterThan(3_000);
  expectNone(texts, word, instead);
});
