import { expect, it } from 'vitest';
import { RIGHTS } from '../../src/database/grant-rights.ts';
import { read } from '../support/read-project.ts';

it('docs/privacy.md says for each table whether it has personal data', () => {
  const [, stored = ''] = /## What is stored([^]*?)\n## /.exec(read('docs/privacy.md')) ?? [];
  const named = new Set(Array.from(stored.matchAll(/`(\w+)(?:\.\w+)?`/g), ([, name]) => name));
  expect(Object.keys(RIGHTS).filter((table) => !named.has(table))).toEqual([]);
});
