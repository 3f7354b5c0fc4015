import { describe, expect, it } from 'vitest';
import { GiveUp, NeedsOperator, TryAgain, tryAgainWith } from '../../../src/core/domain/errors.ts';
import { perhapsTaken } from '../../../src/core/domain/classify-error.ts';

const unsent = (httpStatus?: number): TryAgain => new TryAgain('no', { sent: false, httpStatus });
const gaveUp = (httpStatus?: number): Error => new GiveUp('no', { reason: 'No.', httpStatus });
const held = (httpStatus?: number): Error => new NeedsOperator('no', { httpStatus });
const named = (error: Error & { httpStatus?: number | undefined }): [string, Error] => [
  `${error.name} after ${error.httpStatus ?? 'no status'}`,
  error,
];

describe('perhapsTaken', () => {
  it('is true after an unforeseen error, or a request that was sent without a clear answer', () => {
    expect(perhapsTaken(new TryAgain('no answer', { sent: true }))).toBe(true);
    expect(perhapsTaken(new TryAgain('no', { sent: true, httpStatus: 409 }))).toBe(true);
    expect(perhapsTaken(new TypeError('a bug'))).toBe(true);
    expect(perhapsTaken('thrown')).toBe(true);
  });

  it.each(
    [unsent(408), unsent(500), unsent(501), unsent(503), unsent(200), gaveUp(503), held(500), held(408)].map(named),
  )('is true after a status that does not prove a refusal, whatever the provider throws: %s', (_what, error) => {
    expect(perhapsTaken(error)).toBe(true);
  });

  it.each(
    [unsent(), unsent(429), unsent(423), gaveUp(), gaveUp(422), gaveUp(200), held(), held(401), held(302)].map(named),
  )('is false if the POS refused the order, or there was no connection: %s', (_what, error) => {
    expect(perhapsTaken(error)).toBe(false);
  });

  it('is false if an earlier request failed, so that the order was not sent', () => {
    expect(perhapsTaken(tryAgainWith(unsent(503), { sent: false }))).toBe(false);
    expect(tryAgainWith(unsent(429), { sent: false }).httpStatus).toBe(429);
  });
});
