/** SECURITY.md: each promise names tests that are there. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { read, ROOT } from '../support/read-project.ts';

const [, section = ''] = read('SECURITY.md').split(/^## Each promise.*$/m);
const promises = (section.split(/^## /m, 1)[0] ?? '')
  .split(/^- /m)
  .slice(1)
  .map((item) =>
    item
      .replace(/\n\n.*/s, '')
      .trim()
      .replaceAll(/\n */g, ' '),
  );
/** A test, by the beginning of its title. */
const TEST = /\[`([^`]+)`\]\((test\/[\w/.-]+\.ts)\)/g;

describe('a promise of SECURITY.md', () => {
  it('is read by this test together with more than 50 others', () => {
    expect(promises.length).toBeGreaterThan(50);
    expect(promises.flatMap((item) => [...item.matchAll(TEST)]).length).toBeGreaterThanOrEqual(75);
  });

  it.each(promises)('names its tests: %s', (item) => {
    const [, shown = ''] = /^\*\*[^*]+\.\*\* [^[\]]+\. (\[.+)$/.exec(item) ?? [];
    const tests = [...shown.matchAll(TEST)];
    expect(tests.map(([link]) => link).join(', '), item).toBe(shown);
    expect(tests).not.toEqual([]);
    for (const [, beginning = '', file = ''] of tests) {
      expect(existsSync(join(ROOT, file)), file).toBe(true);
      const text = read(file);
      const titles = [`'`, `"`, '`'].flatMap((quote) =>
        text
          .split(`(${quote}${beginning}`)
          .slice(1)
          .filter((rest) => rest.split('\n', 1)[0]?.includes(`${quote}, `)),
      );
      expect(titles, `${file} has one test whose title begins: ${beginning}`).toHaveLength(1);
    }
  });
});
