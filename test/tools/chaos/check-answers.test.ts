import { describe, expect, it } from 'vitest';
import { checkAnswers, checkPace, known200 } from '../../../tools/chaos/check-answers.ts';
import type { Answer } from '../../../tools/chaos/send-status.ts';

const answered = (...statuses: Answer['status'][]): Answer[] => statuses.map((status) => inMs(status, 10));
const inMs = (status: Answer['status'], tookMs: number): Answer => ({
  at: 0,
  status,
  tookMs,
  outcome: '',
  webhookId: '',
});

describe('an answer outside the contract', () => {
  it.each([401, 413, 404, 400, 204])('is a complaint if its status is %i, during any faults', (status) => {
    expect(checkAnswers(answered(200, status, 500), new Set(['kill', 'roll']))).toEqual([
      `1 webhooks were answered ${status}`,
    ]);
  });

  it.each([502, 503, 'timeout'] as const)(
    'is a complaint (%s) if processes are replaced, but not if a process is killed',
    (status) => {
      expect(checkAnswers(answered(200, status), new Set(['roll']))).toEqual([`1 webhooks were answered ${status}`]);
      expect(checkAnswers(answered(200, status), new Set(['roll', 'kill']))).toEqual([]);
    },
  );

  it('does not include 200 and 500', () => {
    expect(checkAnswers(answered(200, 500), new Set(['roll']))).toEqual([]);
  });
});

describe('a late answer', () => {
  const oneLate = [...answered(...Array.from({ length: 99 }, () => 500)), inMs(500, 1_501)];

  it('is a complaint while Postgres and Pub/Sub are away', () => {
    const away = new Set(['away', 'publish-hang'] as const);
    expect(checkPace(oneLate, away, 1)).toBe('0.99 of all webhooks were answered 200 or 500 within 1500 ms');
    expect(checkPace(oneLate, away, 1.1)).toBeUndefined();
    expect(checkPace(answered(200, 500), away, 1)).toBeUndefined();
  });

  it('is no complaint while processes also stand still', () => {
    expect(checkPace(oneLate, new Set(['away', 'freeze']), 1)).toBeUndefined();
  });
});

it('the share of accepted webhooks is the share of answers with 200 in time', () => {
  expect(known200([...answered(200, 200, 200, 500, 'timeout'), inMs(200, 1_501)])).toBe(0.5);
  expect(known200(answered(200, 200, 500))).toBe(0.666_666);
  expect(known200([])).toBe(1);
});

it('one in a thousand webhooks may be answered 500 while only Postgres is away', () => {
  const missing = (count: number): Answer[] =>
    answered(...Array.from({ length: 1_000 }, (_, nth) => (nth < count ? 500 : 200)));
  expect(checkPace(missing(1), new Set(['away']), 1)).toBeUndefined();
  expect(checkPace(missing(2), new Set(['away']), 1)).toBe('0.998 of all webhooks were answered 200 within 1500 ms');
});
