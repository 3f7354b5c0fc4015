import { describe, expect, it } from 'vitest';
import { GiveUp, NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import { perhapsTaken } from '../../../src/core/domain/classify-error.ts';

const unsent = (httpStatus?: number): Error => new TryAgain('no', { sent: false, httpStatus });
const gaveUp = (httpStatus?: number): Error => new GiveUp('no', { reason: 'No.', httpStatus });
const held = (httpStatus?: number): Error => new NeedsOperator('no', { httpStatus });

describe('an order may have been taken', () => {
  it.each([true, false])('where the request was sent, or something unforeseen happened (deduplicates: %s)', (it) => {
    expect(perhapsTaken(new TryAgain('no answer', { sent: true }), { deduplicates: it })).toBe(true);
    expect(perhapsTaken(new TryAgain('no', { sent: true, httpStatus: 409 }), { deduplicates: it })).toBe(true);
    expect(perhapsTaken(new TypeError('a bug'), { deduplicates: it })).toBe(true);
    expect(perhapsTaken('thrown', { deduplicates: it })).toBe(true);
  });

  it.each([unsent(408), unsent(500), unsent(501), unsent(503), unsent(200), gaveUp(503), held(500), held(408)])(
    'by a POS that does not deduplicate, whatever its provider says: %o',
    (error) => {
      expect(perhapsTaken(error, { deduplicates: false })).toBe(true);
      expect(perhapsTaken(error, { deduplicates: true })).toBe(false);
    },
  );

  it.each([unsent(), unsent(429), unsent(423), gaveUp(), gaveUp(422), gaveUp(200), held(), held(401), held(302)])(
    'never, where it is refused or there was no connection: %o',
    (error) => {
      for (const deduplicates of [true, false]) expect(perhapsTaken(error, { deduplicates })).toBe(false);
    },
  );
});
