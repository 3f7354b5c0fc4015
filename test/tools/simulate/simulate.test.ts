import { expect, it } from 'vitest';
import { runSimulation } from '../../support/run-simulation.ts';

it('seeds break no promise', async () => {
  const { code, said } = await runSimulation('--seed 2 --seeds 2 --orders 4');
  expect(said).toMatch(/seed 3: .* [1-9]\d* faults/);
  expect(said.match(/ 0 complaints/g)).toHaveLength(2);
  expect(code).toBe(0);
});
