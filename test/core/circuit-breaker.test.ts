import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { circuitBreaker, type CircuitBreaker } from '../../src/core/circuit-breaker.ts';
import { GiveUp, OursToFix, TryAgain } from '../../src/core/errors.ts';
import { findable } from '../support/pos-without-deduplication.ts';
import { startPos, type Pos, type PosFault } from '../support/start-pos.ts';
import { startSystem, type System } from '../support/start-system.ts';
import { until } from '../support/until.ts';

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
  const start = (): void => {
    vi.useFakeTimers({ toFake: ['performance'] });
    logged = [];
    breaker = circuitBreaker({ info: log('info'), warn: log('warn'), error: log('error') });
  };
  afterEach(() => void vi.useRealTimers());

  it('opens when ten locations in a row are silent, and the first answer closes it: one line each way', () => {
    start();
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

  it('stays closed when one location is silent a hundred times', () => {
    start();
    for (let nth = 0; nth < 100; nth += 1) ended('dead', SILENCE);
    expect(state()).toBe('closed');
  });

  it('stays closed when somebody answers in between, or the silences are far apart', () => {
    start();
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

  it.each<[string, unknown]>([
    ['429', new TryAgain('slow down', { sent: false, httpStatus: 429, retryAfterMs: 1_000 })],
    ['404', new GiveUp('no such menu', { reason: 'closed', httpStatus: 404 })],
    ['401', new OursToFix('wrong token', { httpStatus: 401 })],
    ['our own keeping to a limit', new TryAgain('enough for now', { sent: false, retryAfterMs: 1_000 })],
    ['settings that make no request', new OursToFix('the URL is not valid')],
    ['an order that cannot be expressed', new GiveUp('no such item', { reason: 'not on the menu' })],
  ])('stays closed at %s, which is no silence', (_, error) => {
    start();
    endedAt(50, error);
    expect(state()).not.toBe('open');
  });

  it.each<[string, unknown]>([
    ['500', new TryAgain('broken', { sent: true, httpStatus: 500 })],
    ['503 with Retry-After', new TryAgain('later', { sent: false, httpStatus: 503, retryAfterMs: 1_000 })],
    ['no connection', new TryAgain('ECONNREFUSED', { sent: false })],
    ['what a provider did not foresee', new TypeError('fetch failed')],
  ])('opens at %s', (_, error) => {
    start();
    endedAt(10, error);
    expect(state()).toBe('open');
  });

  it('is closed by an answer that refuses, too', () => {
    start();
    endedAt(10, SILENCE);
    ended('club-1', new GiveUp('no such item', { reason: 'not on the menu', httpStatus: 422 }));
    expect(state()).toBe('closed');
  });

  it('does not open again at calls that began before the answer', () => {
    start();
    const began = performance.now();
    ended('well');
    for (let nth = 1; nth <= 20; nth += 1) ended(`club-${nth}`, SILENCE, began);
    expect(state()).toBe('closed');
  });

  it('counts silence from when the call began: settings that were put during it have not been tried', () => {
    start();
    const began = performance.now();
    vi.advanceTimersByTime(15_000);
    for (let nth = 1; nth <= 10; nth += 1) ended(`club-${nth}`, SILENCE, began);
    expect(breaker.silentLocations()[0]?.silentForS).toBeGreaterThan(15);
  });

  it('forgets a location that another integration serves now', () => {
    start();
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

describe('a vendor whose POS is silent everywhere', () => {
  let system: System;
  let silent: Pos;
  let pos: Pos;
  let other: Pos;

  beforeAll(async () => {
    [system, silent, pos, other] = await Promise.all([
      startSystem({ providers: [findable] }),
      startPos(),
      startPos(),
      startPos(),
    ]);
    await system.addLocation('other', { ordersUrl: other.ordersUrl }, 'findable');
    await system.addLocation('neighbour', { ordersUrl: pos.ordersUrl });
  });
  afterEach(async () => {
    silent.behave = undefined;
    await until(async () => {
      await makeDue();
      return allSent();
    }, 90_000);
  }, 100_000);
  afterAll(() => Promise.all([system?.stop(), silent?.stop(), pos?.stop(), other?.stop()]));

  /** Locations of one vendor, each with so many orders. */
  const openAt = async (prefix: string, locations: number, orders: number): Promise<void> => {
    const locationIds = Array.from({ length: locations }, (_, nth) => `${prefix}-${nth}`);
    for (const locationId of locationIds) await system.addLocation(locationId, { ordersUrl: silent.ordersUrl });
    for (let each = 0; each < orders; each += 1) {
      await Promise.all(locationIds.map((locationId) => system.placeOrder({ locationId })));
    }
  };
  /** Opens the circuit by refusals, which cost no time-out, and then lets all probes hang. */
  const open = async (prefix: string): Promise<void> => {
    const before = opens();
    silent.behave = () => ({ status: 503 });
    await openAt(prefix, 12, 2);
    // One that has not failed yet is tried beside the probes.
    await until(
      async () =>
        (await count(
          `(SELECT DISTINCT location_id FROM placements JOIN placement_attempts USING (service_order_id)
            WHERE outcome = 'TryAgain' AND location_id LIKE '${prefix}-%') AS l`,
        )) === 12,
      30_000,
    );
    await until(async () => opens() > before && (await underWay()) === 0);
    silent.behave = () => 'hang';
    await makeDue();
    await until(async () => (await underWay()) === 4);
  };
  const lines = (what: string): number => system.logged.filter((line) => line.includes(what)).length;
  const opens = (): number => lines('circuit open');
  const count = async (where: string): Promise<number> =>
    Number((await system.query(`SELECT count(*) FROM ${where}`))[0]?.['count']);
  const underWay = (): Promise<number> => count('placement_attempts WHERE ended_at IS NULL');
  const allSent = async (): Promise<boolean> => (await count('placements WHERE finished_at IS NULL')) === 0;
  /** Who has been refused often waits long. */
  const makeDue = (): Promise<unknown> =>
    system.query(
      `UPDATE placements SET next_attempt_at = now()
       WHERE finished_at IS NULL AND lease_id IS NULL AND next_attempt_at <> 'infinity'`,
    );
  /** @returns milliseconds from the signal to `sent` */
  const timeToSend = async (locationId: string): Promise<number> => {
    const began = performance.now();
    const { serviceOrderId } = await system.placeOrder({ locationId });
    await until(async () => (await system.placement(serviceOrderId))?.['state'] === 'sent', 30_000);
    return performance.now() - began;
  };

  it('keeps no other vendor waiting from the first moment on, is tried by a few calls at a time, and recovers by itself', async () => {
    silent.behave = () => 'hang';
    // More than there are workers.
    await openAt('hung', 240, 2);
    await until(async () => silent.requests >= 168 && (await count('placements WHERE location_id IS NULL')) === 0);
    // Nobody knows yet that it hangs: that takes a time-out.
    expect(await timeToSend('other')).toBeLessThan(2_000);
    expect(opens()).toBe(0);

    await until(async () => opens() === 1 && (await underWay()) <= 4, 40_000);
    const requests = silent.requests;
    for (let each = 0; each < 20; each += 1) {
      await system.placeOrder({ locationId: `hung-${each}` });
      expect(await timeToSend('other')).toBeLessThan(2_000);
      expect(await underWay()).toBeLessThanOrEqual(4);
    }
    expect(silent.requests - requests).toBeLessThanOrEqual(8);

    silent.behave = undefined;
    await until(allSent, 90_000);
    expect(lines('circuit closed')).toBe(1);
    expect(opens()).toBe(1);
    expect(silent.tickets).toHaveLength(500);
  }, 120_000);

  it('does not hold back a location that has not failed, whose answer shows that the vendor is there', async () => {
    const before = lines('circuit closed');
    await open('quiet');
    expect(await timeToSend('neighbour')).toBeLessThan(2_000);
    expect(lines('circuit closed')).toBe(before + 1);
  }, 60_000);

  it('lets no order wait that needs no probe: one whose deadline passes, one of a location with new settings', async () => {
    await open('late');
    await system.query(
      `UPDATE placements SET deadline_at = now() - interval '1 s', next_attempt_at = now()
       WHERE location_id LIKE 'late-%' AND state = 'waiting' AND lease_id IS NULL`,
    );
    const late = (state: string): Promise<number> =>
      count(`placements WHERE deadline_at < now() AND state = '${state}'`);
    expect(await late('waiting')).toBeGreaterThan(4);
    await until(async () => (await late('waiting')) === 0, 8_000);
    expect(await late('failed')).toBeGreaterThan(4);
    expect(await underWay()).toBeLessThanOrEqual(4);

    // An order that hangs would be in doubt at the POS before, and wait for an operator.
    const [idle] = await system.query(
      `SELECT location_id FROM placements WHERE location_id LIKE 'late-%'
       GROUP BY location_id HAVING bool_and(finished_at IS NOT NULL) LIMIT 1`,
    );
    const locationId = String(idle?.['location_id']);
    await system.addLocation(locationId, { ordersUrl: pos.ordersUrl });
    const { serviceOrderId } = await system.placeOrder({ locationId });
    await until(() => pos.tickets.some((ticket) => ticket.serviceOrderId === serviceOrderId), 12_000);
  }, 60_000);

  it.each<[string, PosFault]>([
    ['429', { status: 429, headers: { 'retry-after': '1' } }],
    ['422', { status: 422 }],
  ])('is not silent where it answers %s', async (_, fault) => {
    const before = opens();
    silent.behave = () => fault;
    const requests = silent.requests;
    await openAt(`answers-${JSON.stringify(fault).length}`, 12, 1);
    await until(() => silent.requests >= requests + 12);
    expect(opens()).toBe(before);
  });

  it('is not silent where one till of many is dead', async () => {
    const before = opens();
    silent.behave = () => ({ status: 503 });
    const requests = silent.requests;
    await openAt('dead', 1, 20);
    await until(() => silent.requests >= requests + 20);
    expect(opens()).toBe(before);
  });
});
