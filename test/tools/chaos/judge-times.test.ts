import { describe, expect, it } from 'vitest';
import { judgeTimes } from '../../../tools/chaos/judge-times.ts';
import { slowdownOf, type Piece } from '../../../tools/chaos/measure-slowdown.ts';

describe('a recovery of 7 s when 5 s are allowed', () => {
  const judge = (slowdown: number) =>
    judgeTimes([{ slowdown, complaint: (by) => (5 * by < 7 ? 'it took 7 s' : undefined) }]);

  it('is a complaint on a machine that is less than 1.4 times slower', () => {
    expect(judge(1)).toEqual({ complaints: ['it took 7 s'], notJudged: [] });
    expect(judge(1.3)).toEqual({ complaints: ['it took 7 s'], notJudged: [] });
  });

  it('is no complaint on a machine that is 1.4 to 2 times slower', () => {
    expect(judge(1.4)).toEqual({ complaints: [], notJudged: [] });
    expect(judge(2)).toEqual({ complaints: [], notJudged: [] });
  });

  it('is reported and not judged on a machine that is more than 2 times slower', () => {
    expect(judge(2.1)).toEqual({ complaints: [], notJudged: ['it took 7 s, while the machine was 2.1 times slower'] });
  });
});

describe('the slowdown of the machine', () => {
  const work = (due: number, tookMs: number): Piece => ({ due, tookMs, leastMs: 25 });

  it('is the time of the work divided by its undisturbed time, in the given span', () => {
    const pieces = [work(0, 25), work(500, 100), work(1_000, 100), work(1_500, 25)];
    expect(slowdownOf(pieces, 0, 500)).toBe(1);
    expect(slowdownOf(pieces, 500, 1_500)).toBe(4);
    expect(slowdownOf(pieces, 0, 2_000)).toBe(1.6);
  });

  it('counts a standstill with its length', () => {
    const pieces = [...Array.from({ length: 18 }, (_, nth) => work(nth * 500, 25)), work(9_000, 1_000)];
    expect(slowdownOf(pieces, 0, 10_000)).toBe(1.11);
  });

  it('is 1 until something is measured', () => {
    expect(slowdownOf([], 0, 1_000)).toBe(1);
  });
});
