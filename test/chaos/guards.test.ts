import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { MUTATIONS } from '../../chaos/guards.ts';

it.each(MUTATIONS)('the guard can be found where it stands: $guard', ({ file, edits }) => {
  const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
  for (const [from] of edits) expect(text.split(from)).toHaveLength(2);
});
