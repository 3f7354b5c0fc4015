import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { expect, it, vi } from 'vitest';
import { MUTATIONS } from '../../tools/chaos/guards.ts';
import { acceptHistories, MODELLED_GUARDS, POS_KINDS, searchModel } from '../../tools/simulate/search-model.ts';
import { needsTool } from './needs-tool.ts';

for (const tool of ['spin', 'gcc']) needsTool(tool, tool);
vi.setConfig({ testTimeout: 600_000 });

it.each(POS_KINDS)('no state of the model breaks a claim, with a POS of kind %j', async (pos) => {
  const { states, ...found } = await searchModel(pos);
  expect(found).toEqual({ isComplete: true, error: undefined });
  expect(states).toBeGreaterThan(500_000);
});

it('each guard of the model has a mark in src, except two', () => {
  const marks = new Set(Object.values(MUTATIONS).flatMap(({ edits }) => Object.keys(edits)));
  const unmarked = Object.keys(MODELLED_GUARDS).filter((guard) => !marks.has(guard));
  expect(unmarked).toEqual(['look-up-after', 'doubt-needs-lease']);
});

it.each(Object.entries(MODELLED_GUARDS))('the model breaks a claim without the guard %s', async (guard, pos) => {
  expect((await searchModel(pos, guard)).error).toMatch(/^assertion violated|^non-progress cycle/);
});

it('the model accepts the history of each simulated order', async () => {
  const argv = ['--seed', '3', '--seeds', '2', '--orders', '20', '--feed-model'];
  const thread = new Worker(new URL('../../tools/simulate/simulate.ts', import.meta.url), {
    argv,
    execArgv: [],
    stdout: true,
  });
  const [[code], said] = await Promise.all([once(thread, 'exit'), text(thread.stdout)]);
  expect(said.match(/accepts the histories of [1-9]\d* orders of (?:standard|blind|findable|slow)\n/g)).toHaveLength(4);
  expect(said).not.toContain('refuses');
  expect(code).toBe(0);
});

it('the model refuses a forged history', async () => {
  const begins = ['rank 0', 'createOrder', 'ticket'];
  const forged = [
    [],
    ['ends sent'],
    [...begins, 'ticket', 'rank 10', 'ends sent'],
    [...begins, 'rank 80', 'rank 10', 'ends sent'],
    [...begins, 'rank 10', 'cancel requested', 'createOrder', 'cancelOrder', 'rank 80', 'ends sent'],
    [...begins, 'rank 10', 'rank 80', 'ends withdrawn'],
  ];
  const real = [...begins, 'rank 10', 'cancel requested', 'cancelOrder', 'rank 80', 'ends sent'];
  const verdicts = await acceptHistories({ dedup: 1, find: 0, cancels: 1 }, [...forged, real]);
  expect(verdicts).toEqual([...forged.map(() => false), true]);
});
