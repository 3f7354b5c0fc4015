import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { circuitBreaker, type CircuitBreaker } from '../../../src/core/placements/circuit-breaker.ts';
import { GiveUp, NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';

const SILENCE = new TryAgain('no answer', { sent: true });

describe('a circuit', () => {
  let logged: string[];
  let breaker: CircuitBreaker;
  const log = (level: string) => (about: object, message: string) =>
    void logged.push(`${level} ${JSON.stringify(about)} ${message.split(':')[0]}`);
  const state = (): string | undefined => breaker.states().get('acme');
  const ended = (locationId: string, error?: unknown, began?: number): void => {
    vi.advanceTimersByTime(1);
    breaker.callEnded({ locationId, integration: 'acme' }, began ?? performance.now(), error);
  };
  const endedAt = (count: number, error: unknown): void => {
    for (let nth = 1; nth <= count; nth += 1) ended(`club-${nth}`, error);
  };
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] });
    logged = [];
    breaker = circuitBreaker({ info: log('info'), warn: log('warn'), error: log('error') });
  });
  afterEach(() => void vi.useRealTimers());

  it('opens after ten silent locations in a row, closes at the first answer, and logs one line for each change', () => {
    endedAt(9, SILENCE);
    expect(state()).toBe('closed');
    ended('club-10', SILENCE);
    ended('club-11', SILENCE);
    expect(state()).toBe('open');
    expect(breaker.silentLocations()).toHaveLength(11);
    ended('club-3');
    ended('club-4');
    expect(state()).toBe('closed');
    expect(breaker.silentLocations()).toEqual([]);
    expect(logged).toEqual([
      'warn {"integration":"acme","locations":10} circuit open',
      'info {"integration":"acme"} circuit closed',
    ]);
  });

  it('counts a location as silent only while the circuit is open, and only until the location answers', () => {
    const isSilent = (locationId: string, integration: string | null = 'acme'): boolean =>
      breaker.isSilent({ locationId, integration });
    endedAt(9, SILENCE);
    expect(isSilent('club-1')).toBe(false);
    ended('club-10', SILENCE);
    expect(isSilent('club-1')).toBe(true);
    expect(isSilent('club-11')).toBe(false);
    expect(isSilent('club-1', 'other')).toBe(false);
    expect(isSilent('club-1', null)).toBe(false);
    ended('club-11');
    expect(isSilent('club-1')).toBe(false);
  });

  it('stays closed if one location is silent a hundred times', () => {
    for (let nth = 0; nth < 100; nth += 1) ended('dead', SILENCE);
    expect(state()).toBe('closed');
  });

  it('stays closed if an answer comes between the silent calls, or if these calls are far apart', () => {
    endedAt(9, SILENCE);
    ended('well');
    ended('club-10', SILENCE);
    expect(state()).toBe('closed');
    ended('well');
    endedAt(9, SILENCE);
    vi.advanceTimersByTime(75_000);
    ended('club-10', SILENCE);
    expect(state()).toBe('closed');
  });

  it('opens even if silent calls take minutes and end one after another', () => {
    const callS = 110;
    for (let second = 0; second < 60 + callS; second += 6) {
      vi.advanceTimersByTime(6_000);
      const nth = (second - callS) / 6;
      if (nth > 0) ended(`club-${Math.ceil(nth)}`, SILENCE, performance.now() - callS * 1_000);
    }
    expect(state()).toBe('open');
  });

  it.each<[string, unknown]>([
    ['429', new TryAgain('slow down', { sent: false, httpStatus: 429, retryAfterMs: 1_000 })],
    ['404', new GiveUp('no such menu', { reason: 'closed', httpStatus: 404 })],
    ['401', new NeedsOperator('wrong token', { httpStatus: 401 })],
    ['our own rate limit', new TryAgain('enough for now', { sent: false, retryAfterMs: 1_000 })],
    ['settings with which no request is made', new NeedsOperator('the URL is not valid')],
    ['an order that the provider cannot write', new GiveUp('no such item', { reason: 'not on the menu' })],
  ])('stays closed after errors that do not mean silence: %s', (_, error) => {
    endedAt(50, error);
    expect(state()).not.toBe('open');
  });

  it.each<[string, unknown]>([
    ['the status 500', new TryAgain('broken', { sent: true, httpStatus: 500 })],
    ['the status 503 and a Retry-After', new TryAgain('later', { sent: false, httpStatus: 503, retryAfterMs: 1_000 })],
    ['no connection', new TryAgain('ECONNREFUSED', { sent: false })],
    ['an error that the provider did not foresee', new TypeError('fetch failed')],
  ])('opens after ten calls that end with %s', (_, error) => {
    endedAt(10, error);
    expect(state()).toBe('open');
  });

  it('closes when a POS refuses an order', () => {
    endedAt(10, SILENCE);
    ended('club-1', new GiveUp('no such item', { reason: 'not on the menu', httpStatus: 422 }));
    expect(state()).toBe('closed');
  });

  it('is not opened by calls that began before the last answer', () => {
    const began = performance.now();
    ended('well');
    for (let nth = 1; nth <= 20; nth += 1) ended(`club-${nth}`, SILENCE, began);
    expect(state()).toBe('closed');
  });

  it('counts silence from the beginning of a call, not from its end', () => {
    const began = performance.now();
    vi.advanceTimersByTime(15_000);
    for (let nth = 1; nth <= 10; nth += 1) ended(`club-${nth}`, SILENCE, began);
    expect(breaker.silentLocations()[0]?.silentForS).toBeGreaterThan(15);
  });

  it('forgets a location that has moved to another integration', () => {
    endedAt(10, SILENCE);
    breaker.callEnded({ locationId: 'club-1', integration: 'other' }, performance.now(), SILENCE);
    expect(breaker.silentLocations().map((each) => each.locationId)).not.toContain('club-1');
    expect(breaker.states()).toEqual(
      new Map([
        ['acme', 'open'],
        ['other', 'closed'],
      ]),
    );
  });
});
