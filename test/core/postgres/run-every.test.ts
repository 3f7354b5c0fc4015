import { expect, it, vi } from 'vitest';
import { liveProcesses } from '../../../src/core/domain/live-processes.ts';
import { runEvery, workLoop } from '../../../src/core/postgres/loops.ts';

it('a job rests for a multiple of the time that its work took', async () => {
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

it('a job rests longer the more processes share its rounds', async () => {
  const stopping = new AbortController();
  const began: number[] = [];
  const work = async (): Promise<void> => {
    began.push(performance.now());
    if (began.length === 2) stopping.abort();
  };
  liveProcesses.count = 4;
  const about = { observe() {}, name: 'status polling', firstMs: 0, isShared: true, signal: stopping.signal } as const;
  await runEvery(20, work, about).finally(() => (liveProcesses.count = 1));
  const [first = 0, second = 0] = began;
  expect(second - first).toBeGreaterThan(4 * 20 - 2);
});

it('a claim that failed is repeated after a second, though nothing is due: it may have been committed', async () => {
  vi.useFakeTimers();
  let claims = 0;
  const loop = workLoop({
    capacity: 1,
    poll: () => new Promise(() => {}),
    async claim() {
      claims += 1;
      if (claims < 3) throw new Error('the connection broke');
      return [];
    },
    work: async () => {},
    log: { error() {} },
    failing: 'it could not be claimed',
  });
  loop.start();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(claims).toBe(3);
  vi.useRealTimers();
  await loop.stop();
});
