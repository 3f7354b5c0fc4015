import { expect, it } from 'vitest';
import { classifyError } from '../../../src/core/domain/classify-error.ts';
import { GiveUp, NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import { attemptEndJson } from '../../../src/core/transitions/record-attempt.ts';
import { decideByKind } from '../../../src/core/placements/call-provider.ts';

it.each<[string, unknown, object]>([
  ['no connection', new TryAgain('x', { sent: false }), { code: 'pos_unreachable' }],
  ['no answer', new TryAgain('x', { sent: true }), { code: 'pos_silent' }],
  ['a limit of our own', new TryAgain('x', { sent: false, retryAfterMs: 1 }), { code: 'pos_busy' }],
  ['429', new TryAgain('x', { sent: false, httpStatus: 429 }), { code: 'pos_busy', httpStatus: 429 }],
  ['503', new TryAgain('x', { sent: false, httpStatus: 503 }), { code: 'pos_failing', httpStatus: 503 }],
  ['401', new NeedsOperator('x', { httpStatus: 401 }), { code: 'pos_refused_us', httpStatus: 401 }],
  ['403', new NeedsOperator('x', { httpStatus: 403 }), { code: 'pos_refused_us', httpStatus: 403 }],
  ['302', new NeedsOperator('x', { httpStatus: 302 }), { code: 'pos_set_up_wrong', httpStatus: 302 }],
  ['a setting', new NeedsOperator('x'), { code: 'pos_set_up_wrong' }],
  ['an order', new GiveUp('x', { reason: 'no', httpStatus: 422 }), { code: 'pos_rejected_order', httpStatus: 422 }],
  ['a fault of ours', new TypeError('x'), { code: 'unexpected_error' }],
  ['anything', 'x', { code: 'unexpected_error' }],
])('an error without a cause gets the general cause of its kind: %s', (_what, error, cause) => {
  expect(classifyError(error).cause).toEqual(cause);
});

it('an error with a cause keeps the cause and its message', () => {
  const cause = { code: 'reconnect_needed', httpStatus: 400 } as const;
  expect(classifyError(new NeedsOperator('ask the restaurant', { httpStatus: 400, cause }))).toEqual({
    problem: 'ask the restaurant',
    cause,
  });
});

it.each([
  ['is another error', new Error('reset')],
  ['has an unknown code', { code: 'made_up' }],
  ['cannot be stored', { code: 'location_left_pos', integration: 'a\0b' }],
])('a cause that %s is replaced by the general cause of its error', (_what, cause) => {
  const error = Object.assign(new NeedsOperator('x', { httpStatus: 401 }), { cause });
  expect(classifyError(error).cause).toEqual({ code: 'pos_refused_us', httpStatus: 401 });
});

it('an unknown field of a cause is left out', () => {
  const cause = { code: 'pos_busy', httpStatus: 429, body: 'Ada, +4930 123' };
  const error = Object.assign(new TryAgain('x', { sent: false }), { cause });
  expect(classifyError(error).cause).toEqual({ code: 'pos_busy', httpStatus: 429 });
});

it('characters that Postgres cannot store are removed from the texts of an error', () => {
  expect(decideByKind(new GiveUp('no\0 buns\ud83c', { reason: 'out \0of buns\ud83c' }))).toMatchObject({
    problem: 'no buns\ufffd',
    reason: 'out of buns\ufffd',
  });
  expect(classifyError(Object.assign(new Error('x'), { name: 'a\0b' })).problem).toBe('unexpected ab');
  expect(attemptEndJson({ attempt: 1, outcome: 'a\0b\ud83c', milliseconds: 1 })).toContain('"outcome":"ab\ufffd"');
});
