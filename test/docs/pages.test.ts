/** The Markdown pages: every link leads somewhere. */
import { globSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MUTATIONS } from '../../tools/chaos/guards.ts';
import { read, ROOT } from '../support/read-project.ts';

const MADE = new Set(['node_modules', 'dist', 'coverage', 'release']);
const find = (pattern: string): string[] =>
  globSync(pattern, { cwd: ROOT, exclude: (path) => MADE.has(path.split('/').at(-1) ?? '') }).toSorted();

const pages = find('**/*.md');
const withoutCode = (text: string): string => text.replaceAll(/^ *```.*?^ *```$/gms, '').replaceAll(/`[^`\n]*`/g, '``');

/** As GitHub makes them of headings. */
function anchorsOf(page: string): Set<string> {
  const seen = new Map<string, number>();
  const headings = read(page)
    .replaceAll(/^ *```.*?^ *```$/gms, '')
    .matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, title = '']) => {
      const plain = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
      const anchor = plain.replaceAll(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-');
      const nth = seen.get(anchor) ?? 0;
      seen.set(anchor, nth + 1);
      return nth === 0 ? anchor : `${anchor}-${nth}`;
    }),
  );
}

/** @returns why a reader of `from` would not get to `target`, or undefined */
function deadEnd(from: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? from : normalize(join(dirname(from), decodeURIComponent(path)));
  const found = statSync(join(ROOT, file), { throwIfNoEntry: false });
  if (found === undefined) return `${from}: there is no ${file}`;
  if (anchor === undefined) return undefined;
  const page = found.isDirectory() ? join(file, 'README.md') : file;
  return anchorsOf(page).has(anchor) ? undefined : `${from}: ${page} has no heading for #${anchor}`;
}

const isOutside = (target: string): boolean => /^[a-z]+:/.test(target);

describe('the pages', () => {
  it('link only to existing files, folders and headings', () => {
    const links = pages.flatMap((page) =>
      [...withoutCode(read(page)).matchAll(/\]\(<?([^)\s>]+)>?\)/g)].map(([, target = '']) => ({ page, target })),
    );
    expect(links.length).toBeGreaterThan(150);
    const inside = links.filter(({ target }) => !isOutside(target));
    expect(inside.map(({ page, target }) => deadEnd(page, target)).filter((each) => each !== undefined)).toEqual([]);
  });

  it('exist at every path that the code names', () => {
    const files = find('{src,console,test,world,tools,packages,deploy,migrations,examples}/**/*.*');
    const named = files
      .filter((file) => !file.endsWith('.md'))
      .flatMap((file) =>
        [...read(file).matchAll(/(?<![\w./-])docs\/[\w./-]+\.(?:md|json)(?:#[\w-]+)?/g)].map(([target]) => target),
      );
    expect(new Set(named).size).toBeGreaterThan(20);
    expect([...new Set(named)].map((target) => deadEnd('', target)).filter((each) => each !== undefined)).toEqual([]);
  });

  it('are all linked: a page of docs from docs/README.md, and the page of a POS from README.md', () => {
    const linksOf = (page: string): string[] =>
      [...read(page).matchAll(/\]\(([^)#]+)\)/g)].map(([, target = '']) => join(dirname(page), target));
    // The page of a POS is listed once, in the README's table of integrations.
    const ofPos = linksOf('README.md').filter((target) => target.startsWith('docs/providers/'));
    const linked = [...linksOf('docs/README.md'), ...ofPos];
    const unlisted = find('docs/**/*.{md,json}').filter((page) => !linked.includes(page) && page !== 'docs/README.md');
    expect(unlisted).toEqual([]);
  });
});

describe('the README', () => {
  const text = read('README.md');

  it('shows the commands `npm ci && npm run demo` and `npm ci && npm test`', () => {
    for (const command of ['npm ci && npm run demo', 'npm ci && npm test']) {
      expect(text).toContain(`\n\`\`\`sh\n${command}\n\`\`\`\n`);
    }
  });
});

it('the glossary has no more than 20 words', () => {
  const words = [...read('docs/glossary.md').matchAll(/^- \*\*/gm)];
  expect(words.length).toBeGreaterThan(12);
  expect(words.length).toBeLessThanOrEqual(20);
});

it('each of the twelve invariants of ARCHITECTURE.md names an existing test or guard', () => {
  const [, text = ''] = read('ARCHITECTURE.md').split('\n## Invariants\n');
  const invariants =
    text
      .split('\n## ')[0]
      ?.split(/^\d+\. /m)
      .slice(1) ?? [];
  expect(invariants).toHaveLength(12);
  const marks = new Set(Object.values(MUTATIONS).flatMap(({ edits }) => Object.keys(edits)));
  for (const invariant of invariants) {
    const guards = [...invariant.matchAll(/`guard: ([\w-]+)`/g)].map(([, mark = '']) => mark);
    const tests = [...invariant.matchAll(/\]\(([\w/.-]+\.ts)\)\s+"([^"]+)"/g)];
    expect(guards.length + tests.length, invariant).toBeGreaterThan(0);
    expect(guards.filter((mark) => !marks.has(mark))).toEqual([]);
    for (const [, file = '', title = ''] of tests) expect(read(file), file).toContain(`('${title}`);
  }
});
