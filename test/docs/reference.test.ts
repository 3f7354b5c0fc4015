import { expect, it } from 'vitest';
import { OPERATIONS } from '../../src/operators/registry.ts';
import { PAGES, withReference } from '../../tools/build/write-docs.ts';
import { read } from '../support/read-project.ts';

// Where it is not: npm run docs
it.each(PAGES)('$file equals what the code generates', (page) => {
  const text = read(page.file);
  expect(text).toBe(withReference(text, page));
});

it.each(OPERATIONS.flatMap(({ id, body }) => (body === undefined ? [] : [{ id, body }])))(
  'the settings in the documentation of $id are valid',
  ({ body }) => {
    for (const example of (body.meta()?.examples ?? []) as unknown[]) {
      expect(body.safeParse(example), JSON.stringify(example)).toMatchObject({ success: true });
    }
  },
);
