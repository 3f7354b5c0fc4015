import { expect, it } from 'vitest';
import { runEvery } from '../../../src/core/postgres/loops.ts';

it('rests so many times as long as its work took', async () => {
  const stopping = new AbortController();
  const rounds: { began: number; ended: number }[] = [];
  const work = async (): Promise<void> => {
    const began = performance.now();
    while (performance.now() < began + 5);
    rounds.push({ began, ended: performance.now() });
    if (rounds.length === 2) stopping.abort();
  };
  const about = { observe() {}, name: 'status polling', firstMs: 0, signal: stopping.signal } as const;
  await runEvery(1, work, { ...about, times: 20 });
  const [first, second] = rounds;
  // A timer may be a millisecond early.
  expect((second?.began ?? 0) - (first?.ended ?? 0)).toBeGreaterThan(20 * 5 - 2);
});
