import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { workLoop, type WorkLoop } from '../../../src/core/postgres/loops.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Pieces that wait to be claimed, and what was claimed so far. A piece is done when `end` is called. */
function startLoop(gather?: { everyMs: number; doneMs: number }) {
  const waiting: string[] = [];
  const claims: string[] = [];
  const underWay: (() => void)[] = [];
  const loop: WorkLoop = workLoop<string>({
    capacity: 3,
    ...(gather !== undefined && { gather }),
    poll: () => Infinity,
    claim: async (limit) => {
      const pieces = waiting.splice(0, limit);
      claims.push(pieces.join(' '));
      return pieces;
    },
    work: () => new Promise<void>((resolve) => underWay.push(resolve)),
    log: { error: (about) => expect(about).toBeUndefined() },
    failing: 'never',
  });
  return {
    claims,
    stop: () => {
      for (const end of underWay.splice(0)) end();
      return loop.stop();
    },
    add: (...pieces: string[]) => {
      waiting.push(...pieces);
      loop.wake();
    },
    end: () => underWay.shift()?.(),
    async start() {
      loop.start();
      await vi.advanceTimersByTimeAsync(1_000);
      claims.length = 0;
    },
  };
}

describe('a loop that gathers small pieces', () => {
  const gather = { everyMs: 15, doneMs: 50 };

  it('claims a piece that comes alone at once, and then only once more, some time after it is done', async () => {
    const loop = startLoop(gather);
    await loop.start();
    loop.add('a');
    await vi.advanceTimersByTimeAsync(0);
    expect(loop.claims).toEqual(['a']);
    await vi.advanceTimersByTimeAsync(1_000);
    loop.end();
    await vi.advanceTimersByTimeAsync(49);
    expect(loop.claims).toEqual(['a']);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(loop.claims).toEqual(['a', '']);
    await loop.stop();
  });

  it('claims what comes during the rest after a claim together, and needs no other claim for the piece that was done', async () => {
    const loop = startLoop(gather);
    await loop.start();
    loop.add('a');
    await vi.advanceTimersByTimeAsync(1);
    loop.end();
    loop.add('b');
    await vi.advanceTimersByTimeAsync(1);
    loop.add('c');
    await vi.advanceTimersByTimeAsync(1_000);
    expect(loop.claims).toEqual(['a', 'b c']);
    await loop.stop();
  });

  it('claims the next pieces at once when all its places were taken', async () => {
    const loop = startLoop(gather);
    await loop.start();
    loop.add('a', 'b', 'c', 'd');
    await vi.advanceTimersByTimeAsync(1_000);
    loop.end();
    await vi.advanceTimersByTimeAsync(0);
    expect(loop.claims).toEqual(['a b c', 'd']);
    await loop.stop();
  });
});

it('a loop that does not gather claims until nothing is left, and when a piece is done', async () => {
  const loop = startLoop();
  await loop.start();
  loop.add('a');
  await vi.advanceTimersByTimeAsync(0);
  expect(loop.claims).toEqual(['a', '']);
  loop.end();
  await vi.advanceTimersByTimeAsync(0);
  expect(loop.claims).toEqual(['a', '', '']);
  await loop.stop();
});
