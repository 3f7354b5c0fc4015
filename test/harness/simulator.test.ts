import { expect, it } from 'vitest';
import { runSimulation } from '../support/run-simulation.ts';

it('a seed gives the same history each time', async () => {
  const { code, said } = await runSimulation('--seed 9 --orders 4 --times 3');
  expect(new Set(said.match(/^seed 9: \w+/gm)).size).toBe(1);
  expect(said.match(/^seed/gm)).toHaveLength(3);
  expect(code).toBe(0);
});

/** Shrunk seeds, each with the guard without which it fails. The guards have tests of their own, which run more often. */
const STORED: [guard: string, seed: string, faults: string[], complaint: RegExp][] = [
  ['refusal-notified', '--seed 17 --only 7 --no-faults', [], /its member was told requested, not refused/],
  [
    'answered-when-out',
    '--seed 10 --only 13',
    ['till sells 1', 'statement slow: A.1 find-token-scopes #3', 'call lost before: A.1 POST pubsub.test/spill #1'],
    /lost: : webhook .* was answered 200/,
  ],
];

it.each(STORED)('a stored seed fails without the guard %s', async (guard, seed, faults, complaint) => {
  const { said } = await runSimulation(`${seed} --orders 12 --without ${guard}`, faults);
  expect(said).toMatch(complaint);
});

it('the simulation fails without a guard, and shrinks the seed to one order and one fault', async () => {
  const { code, said } = await runSimulation('--seed 1 --orders 12 --without spilled-id --shrink');
  expect(said).toMatch(/shrunk in \d+ runs to 1 orders \(\d+\) and 1 faults/);
  expect(said).toMatch(/and so: lost: chaos-1-\d+ webhook .* was answered 200/);
  expect(said).toMatch(/^again: .* --without spilled-id --only \d+ --fault 'old leader 1'$/m);
  expect(code).toBe(1);
});
