import { expect, it, vi } from 'vitest';
import { MUTATIONS } from '../../chaos/guards.ts';
import { MODELLED_GUARDS, POS_KINDS, searchModel } from '../../simulate/search-model.ts';
import { needsTool } from './needs-tool.ts';

for (const tool of ['spin', 'gcc']) needsTool(tool, tool);
vi.setConfig({ testTimeout: 600_000 });

it.each(POS_KINDS)('no state breaks a claim, and every run ends, with a POS of the kind %j', async (pos) => {
  const { states, ...found } = await searchModel(pos);
  expect(found).toEqual({ isComplete: true, error: undefined });
  expect(states).toBeGreaterThan(500_000);
});

it('each guard of the model has a mark in src, except three', () => {
  const marks = new Set(Object.values(MUTATIONS).flatMap(({ edits }) => Object.keys(edits)));
  const unmarked = Object.keys(MODELLED_GUARDS).filter((guard) => !marks.has(guard));
  expect(unmarked).toEqual(['look-up-after', 'doubt-earlier', 'doubt-needs-lease']);
});

it.each(Object.entries(MODELLED_GUARDS))('without %s, a claim is false', async (guard, pos) => {
  expect((await searchModel(pos, guard)).error).toMatch(/^assertion violated|^non-progress cycle/);
});
