import { Worker } from 'node:worker_threads';
import { text } from 'node:stream/consumers';
import { once } from 'node:events';
import { expect, it } from 'vitest';

/** Simulates in a thread of its own, because time and chance are replaced there. */
async function simulate(about: string): Promise<{ code: number; said: string }> {
  const thread = new Worker(new URL('../../simulate/simulate.ts', import.meta.url), {
    argv: about.split(' '),
    execArgv: [],
    stdout: true,
  });
  const [[code], said] = await Promise.all([once(thread, 'exit') as Promise<[number]>, text(thread.stdout)]);
  return { code, said };
}

it('a seed gives the same history each time, and breaks no promise', async () => {
  const { code, said } = await simulate('--seed 2 --seeds 2 --orders 8 --times 2');
  expect(said).toMatch(/seed 2: .* [1-9]\d* faults/);
  expect(said.match(/0 complaints/g)).toHaveLength(4);
  expect(code).toBe(0);
});

it('a guard that is taken away is found, and the failing seed is shrunk to a story', async () => {
  const { code, said } = await simulate('--seed 2 --seeds 5 --orders 8 --without stop-at-failed --shrink');
  expect(said).toMatch(/shrunk in \d+ runs to [1-3] orders .* and [0-3] faults/);
  expect(said).toMatch(/and so: invariant 4: chaos-\d+-\d+ message \d+ came before message/);
  expect(code).toBe(1);
});
