/** The words of CONTRIBUTING's "English" that comments and pages do not use. */
import { globSync } from 'node:fs';
import { expect, it } from 'vitest';
import { read, ROOT } from '../support/read-project.ts';

const SOURCES =
  '{src,console,kit,platform-kit,clients,demo,scripts,bench,chaos,deploy,examples}/**/*.{ts,tsx,js,css,sh,yaml}';
const INSTEAD = {
  anew: 'again',
  beside: 'next to',
  'by (itself|themselves)': 'automatically',
  'mend(s|ed|ing)?': 'fix',
  'now and then': 'periodically',
  whoever: 'the one who',
};

const find = (pattern: string): string[] => globSync(pattern, { cwd: ROOT, exclude: ['**/node_modules/**'] });
/** A page without its code. */
const prose = (text: string): string => text.replaceAll(/```.*?```/gs, '').replaceAll(/`[^`]*`/g, '');
const comments = (text: string): string => text.match(/(?:^|\s)(?:\/\/|#) [^\n]*|\/\*.*?\*\//gs)?.join('\n') ?? '';

it.each(Object.entries(INSTEAD))('no comment and no page says "%s": there is "%s"', (word, instead) => {
  const texts = [
    ...find('{*.md,docs/**/*.md,deploy/**/*.md,migrations/*.md,examples/**/*.md}').map(
      (file) => [file, prose(read(file))] as const,
    ),
    ...find(SOURCES).map((file) => [file, comments(read(file))] as const),
  ];
  expect(texts.length).toBeGreaterThan(400);
  const wrong = new RegExp(`.*\\b${word}\\b.*`, 'gi');
  expect(
    texts.flatMap(([file, text]) => (text.match(wrong) ?? []).map((line) => `${file}: ${line}`)),
    instead,
  ).toEqual([]);
});
