/** SECURITY.md: each promise names a test that is there. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const [, table = ''] = readFileSync(join(PROJECT, 'SECURITY.md'), 'utf8').split(/^## Each promise.*$/m);
const rows = table
  .split(/^## /m, 1)[0]
  ?.split('\n')
  .filter((line) => line.startsWith('|'))
  .slice(2)
  .map((line) => line.split('|').map((cell) => cell.trim()));

describe('each promise of SECURITY.md', () => {
  it('is one of a table', () => expect(rows?.length).toBeGreaterThan(25));

  it.each(rows ?? [])('%s%s', (_before, promise, holds, shown = '', ...rest) => {
    expect(rest).toEqual(['']);
    expect(promise).not.toBe('');
    expect(holds).not.toBe('');
    const [, file = '', title = ''] = /^\[[\w-]+\]\((test\/[\w/.-]+\.ts)\): `([^`]+)`$/.exec(shown) ?? [];
    expect(file, shown).not.toBe('');
    expect(existsSync(join(PROJECT, file)), file).toBe(true);
    const text = readFileSync(join(PROJECT, file), 'utf8');
    const isThere = [`'`, `"`, '`'].some((quote) => text.includes(`(${quote}${title}${quote}, `));
    expect(isThere, `${file} has a test called: ${title}`).toBe(true);
  });
});
