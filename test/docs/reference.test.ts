import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { PAGES, withReference } from '../../scripts/write-docs.ts';

// Where it is not: npm run docs
it.each(PAGES)('docs/$file is what the operations say', async (page) => {
  const text = await readFile(new URL(`../../docs/${page.file}`, import.meta.url), 'utf8');
  expect(text).toBe(withReference(text, page));
});
