import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { claimPlacements } from '../../../src/core/placements/claim-placements.ts';
import { concludePlacement } from '../../../src/core/placements/conclude-placement.ts';
import { recordOrder } from '../../../src/core/placements/record-order.ts';
import { beginTestOrder, endLeftTestOrders } from '../../../src/core/test-orders/test-order.ts';
import { dueLocations, type DueLocations, type Capacity } from '../../../src/core/placements/due-locations.ts';
import { shareOf } from '../../../src/core/placements/work-placements.ts';
import type { SilentLocation } from '../../../src/core/placements/circuit-breaker.ts';
import { readPlans, type ReadPlans } from '../../support/read-plans.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { testPool } from '../../support/test-pool.ts';

const pool = testPool({ max: 2 });
beforeEach(() => pool.query('TRUNCATE placements, locations CASCADE'));
afterEach(() => void vi.restoreAllMocks());

/** Configured locations of one integration; settings matter here by their age alone. */
async function configure(integration: string, ...locationIds: string[]): Promise<void> {
  await pool.query(
    `INSERT INTO locations (location_id, integration, settings, updated_at)
     SELECT unnest($2::text[]), $1, '', now() - interval '1 h'`,
    [integration, locationIds],
  );
}

/** So many due placements of a location, or not fetched yet, due for so many seconds. */
async function backlog(locationId: string | null, count: number, dueForS: number): Promise<void> {
  await pool.query(
    `INSERT INTO placements (service_order_id, location_id, deadline_at, next_attempt_at)
     SELECT concat(coalesce($1, 'new'), '-', nth), $1, now() + interval '1 h', now() - make_interval(secs => $3 - nth / 1000.0)
     FROM generate_series(1, $2::int) AS nth`,
    [locationId, count, dueForS],
  );
}

type About = Capacity & { leaseId: string; lost: readonly string[] };
const ROOM: Capacity = {
  limit: 400,
  share: 4,
  busy: [],
  senders: 100,
  sendersOfOne: 100,
  open: [],
  silent: [],
  late: 0,
  oldest: 100,
  newest: 0,
};

/** Claims as a process that has just started. */
async function claim({ leaseId = randomUUID(), lost = [], ...capacity }: Partial<About>): Promise<string[]> {
  const claims = await claimPlacements(pool, dueLocations(), {
    leaseId,
    lost,
    capacity: () => ({ ...ROOM, ...capacity }),
  });
  return claims.map((each) => each.serviceOrderId).toSorted();
}

const sendingFor = (...locationIds: string[]): { locationId: string; integration: string }[] =>
  locationIds.map((locationId) => ({ locationId, integration: 'acme' }));
const silent = (locationId: string, silentForS: number): SilentLocation => ({
  locationId,
  integration: 'acme',
  silentForS,
});
const open = (probes: number): { integration: string; probes: number }[] => [{ integration: 'acme', probes }];

it('a claim takes only a share of the orders of each location, and the orders under way count for that share', async () => {
  await backlog('club-1', 10, 60);
  await backlog('club-2', 10, 60);
  expect(await claim({ busy: sendingFor('club-1', 'club-1', 'club-1') })).toEqual([
    'club-1-1',
    'club-2-1',
    'club-2-2',
    'club-2-3',
    'club-2-4',
  ]);
});

it('a location has fewer workers while many are busy, so that a hanging vendor leaves workers to others', () => {
  expect([0, 63, 64, 127, 128, 223].map(shareOf)).toEqual([4, 4, 2, 2, 1, 1]);
});

it('between its regular queries, a claim looks for new orders only after a signal', async () => {
  // The next query is never due.
  vi.spyOn(performance, 'now').mockReturnValue(1_000);
  const due = dueLocations();
  const again = (): Promise<unknown[]> =>
    claimPlacements(pool, due, { leaseId: randomUUID(), lost: [], capacity: () => ROOM });
  expect(await again()).toEqual([]);
  await backlog(null, 1, 1);
  expect(await again()).toEqual([]);
  due.signalled();
  expect(await again()).toMatchObject([{ serviceOrderId: 'new-1' }]);
});

it('a test order whose process is gone is not claimed, and fails without a ticket', async () => {
  const test = await beginTestOrder(pool, sampleOrder(), 60);
  await pool.query(`UPDATE placements SET lease_until = now() - interval '1 s'`);
  expect(await claim({})).toEqual([]);
  await endLeftTestOrders(pool);
  expect((await pool.query('SELECT service_order_id, state FROM placements')).rows).toEqual([
    { service_order_id: test.claim.serviceOrderId, state: 'failed' },
  ]);
});

it('an order that was fetched under an expired lease is not recorded, because its contents may miss a cancel', async () => {
  await backlog(null, 1, 1);
  const leaseId = randomUUID();
  await claim({ leaseId });
  await pool.query(`UPDATE placements SET lease_until = now() - interval '1 s'`);
  const order = { ...sampleOrder(), serviceOrderId: 'new-1' };
  expect(await recordOrder(pool, { serviceOrderId: 'new-1', leaseId }, { order, leftOut: [] }, 60)).toBeUndefined();
});

it.each(['waiting', 'in_doubt'] as const)(
  'an order that becomes %s again waits for a person only if it is in doubt',
  async (state) => {
    await backlog('club-1', 1, 1);
    const leaseId = randomUUID();
    await claim({ leaseId });
    // The deadline of its cancel has passed while its worker was suspended.
    await pool.query(`UPDATE placements SET state = 'in_doubt', next_attempt_at = 'infinity'`);
    await pool.query(
      `INSERT INTO placement_attempts (service_order_id, attempt, call, outcome, started_at, ended_at)
       VALUES ('club-1-1', 1, 'findOrder', 'absent', now() + interval '1 h', now() + interval '1 h')`,
    );
    const doubt = state === 'waiting' ? undefined : { secondsSinceRequest: 60 };
    const job = { serviceOrderId: 'club-1-1', leaseId, dueAt: '2026-01-01', state, doubt } as never;
    await concludePlacement({ pool } as never, job, { do: 'release' });
    const { rows } = await pool.query(`SELECT state, next_attempt_at = 'infinity' AS waits FROM placements`);
    expect(rows).toEqual([{ state, waits: state === 'in_doubt' }]);
  },
);

it('a claim takes the locations in turn: the first order of a location goes before the backlog of others', async () => {
  await backlog('hung-1', 10, 600);
  await backlog('hung-2', 10, 600);
  await backlog('healthy', 1, 1);
  expect(await claim({ senders: 1, busy: sendingFor('hung-1', 'hung-2') })).toEqual(['healthy-1']);
});

it('a claim takes some of the newest orders to fetch, so that a backlog does not delay the next order', async () => {
  await backlog(null, 50, 60);
  expect(await claim({ oldest: 2, newest: 1 })).toEqual(['new-1', 'new-2', 'new-50']);
});

it('the orders of a claim whose answer was lost are taken again, but not those of another process', async () => {
  await backlog('club-1', 1, 60);
  await backlog('club-2', 1, 60);
  const [lost, held] = [randomUUID(), randomUUID()];
  expect(await claim({ leaseId: lost, senders: 1 })).toEqual(['club-1-1']);
  expect(await claim({ leaseId: held, senders: 1 })).toEqual(['club-2-1']);
  expect(await claim({})).toEqual([]);
  expect(await claim({ lost: [lost] })).toEqual(['club-1-1']);
});

it('a claim takes only as many orders of one integration as may be under way, and then takes those of another', async () => {
  await configure('acme', 'acme-1', 'acme-2');
  await configure('other', 'other-1');
  await backlog('acme-1', 5, 600);
  await backlog('acme-2', 5, 600);
  await backlog('other-1', 1, 1);
  expect(await claim({ busy: sendingFor('acme-3', 'acme-3', 'acme-3'), sendersOfOne: 5 })).toEqual([
    'acme-1-1',
    'acme-2-1',
    'other-1-1',
  ]);
});

it('a claim takes one order of each silent location, up to the number of probes, and begins with the least recently tried', async () => {
  await configure('acme', 'acme-1', 'acme-2', 'acme-3', 'acme-4', 'well');
  for (const locationId of ['acme-1', 'acme-2', 'acme-3', 'acme-4']) await backlog(locationId, 3, 60);
  await backlog('well', 2, 1);
  const all = [silent('acme-1', 1), silent('acme-2', 30), silent('acme-3', 20), silent('acme-4', 40)];
  expect(await claim({ open: open(0), silent: all })).toEqual(['well-1']);
  expect(await claim({ open: open(2), silent: all, busy: sendingFor('acme-4', 'well') })).toEqual([
    'acme-2-1',
    'acme-3-1',
  ]);
});

it.each([
  ['has new settings, which nobody has tried yet', `updated_at = now() - interval '5 s'`],
  ['is paused, and not called', 'paused_at = now()'],
  ['is paused by its POS, and not called', `pos_paused_at = now(), pos_paused_until = now() + interval '1 h'`],
])('a claim spends no probe on a silent location that %s', async (_, changed) => {
  await configure('acme', 'acme-1', 'acme-2');
  await backlog('acme-1', 2, 60);
  await backlog('acme-2', 1, 60);
  await pool.query(`UPDATE locations SET ${changed} WHERE location_id = 'acme-1'`);
  const about = { silent: [silent('acme-1', 10), silent('acme-2', 10)] };
  expect(await claim({ ...about, open: open(0) })).toEqual(['acme-1-1']);
  expect(await claim({ ...about, open: open(1) })).toEqual(['acme-1-2', 'acme-2-1']);
});

it('a claim takes the orders of a location that has moved from a silent integration to another', async () => {
  await configure('other', 'moved');
  await backlog('moved', 1, 60);
  expect(await claim({ open: open(0), silent: [silent('moved', 10)] })).toEqual(['moved-1']);
});

it('a claim takes the overdue orders of silent locations, including orders in doubt', async () => {
  await configure('acme', 'acme-1');
  await backlog('acme-1', 4, 60);
  await pool.query(`UPDATE placements SET deadline_at = now() - interval '1 s' WHERE service_order_id <> 'acme-1-4'`);
  await pool.query(`UPDATE placements SET state = 'in_doubt' WHERE service_order_id = 'acme-1-1'`);
  expect(await claim({ open: open(0), silent: [silent('acme-1', 10)], late: 5 })).toEqual([
    'acme-1-1',
    'acme-1-2',
    'acme-1-3',
  ]);
});

describe('the work of a claim', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => void vi.useRealTimers());
  /** Long enough for another look. */
  const later = (): void => void vi.advanceTimersByTime(2_000);
  const claimOnce = (on: pg.Pool, due: DueLocations, capacity: Partial<Capacity>): ReturnType<typeof claimPlacements> =>
    claimPlacements(on, due, { leaseId: randomUUID(), lost: [], capacity: () => ({ ...ROOM, ...capacity }) });
  const read = (due: DueLocations, capacity: Partial<Capacity>): Promise<ReadPlans> =>
    readPlans(pool, (recording) => claimOnce(recording, due, capacity));

  it('covers only due orders, and locks only the rows that it claims', async () => {
    await pool.query(
      `INSERT INTO placements (service_order_id, location_id, deadline_at, next_attempt_at)
       SELECT 'later-' || nth, 'club-' || nth, now() + interval '1 h', now() + interval '10 min'
       FROM generate_series(1, 5000) AS nth`,
    );
    await backlog('club-1', 6, 60);
    await backlog('club-2', 6, 60);
    await pool.query('VACUUM ANALYZE placements');
    const { whole, reads } = await read(dueLocations(), { share: 2 });
    expect(whole).not.toContain('placements');
    expect(reads).toBeLessThan(100);
    // A row that was locked and is as it was keeps the number of who locked it.
    const { rows } = await pool.query(`SELECT FROM placements WHERE lease_id IS NULL AND xmax::text <> '0'`);
    expect(rows).toEqual([]);
  });

  it('is small for a location with ten thousand due orders, and other locations are served', async () => {
    await backlog('hung', 10_000, 600);
    await pool.query('VACUUM ANALYZE placements');
    const due = dueLocations();
    const hung = sendingFor('hung', 'hung', 'hung');
    expect(await claimOnce(pool, due, { busy: hung })).toHaveLength(1);
    expect((await read(due, { busy: hung })).reads).toBeLessThan(20);
    expect((await read(due, { busy: [...hung, ...sendingFor('hung')] })).reads).toBe(0);
    await backlog('healthy', 1, 1);
    later();
    expect(await claimOnce(pool, due, { busy: hung, senders: 1 })).toMatchObject([{ locationId: 'healthy' }]);
  });

  it('does not grow with finished orders that an old snapshot keeps', async () => {
    const old = await pool.connect();
    try {
      await backlog('club-0', 1, 1);
      const due = dueLocations();
      expect(await claimOnce(pool, due, {})).toHaveLength(1);
      await old.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await old.query('SELECT FROM placements LIMIT 1');
      for (const locationId of [null, 'club-1']) await backlog(locationId, 30_000, 600);
      await pool.query('DELETE FROM placements');
      await backlog('club-1', 1, 1);
      await backlog(null, 1, 1);
      later();
      expect((await read(dueLocations(), {})).pages).toBeGreaterThan(10_000);
      expect((await read(due, {})).pages).toBeLessThan(500);
    } finally {
      await old.query('ROLLBACK');
      old.release();
    }
  });
});
