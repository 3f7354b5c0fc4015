import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { claimPlacements } from '../../src/core/claim-placements.ts';
import { createDatabase } from '../support/create-database.ts';

let pool: pg.Pool;
beforeAll(async () => {
  pool = new pg.Pool({ connectionString: await createDatabase(), max: 2 });
});
afterAll(() => pool.end());
beforeEach(() => pool.query('TRUNCATE placements CASCADE'));

/** So many due placements of a location, or not fetched yet, due for so many seconds. */
async function backlog(locationId: string | null, count: number, dueForS: number): Promise<void> {
  await pool.query(
    `INSERT INTO placements (service_order_id, location_id, deadline_at, next_attempt_at)
     SELECT concat(coalesce($1, 'new'), '-', nth), $1, now() + interval '1 h', now() - make_interval(secs => $3 - nth / 1000.0)
     FROM generate_series(1, $2::int) AS nth`,
    [locationId, count, dueForS],
  );
}

async function claim(about: Partial<Parameters<typeof claimPlacements>[1]>): Promise<string[]> {
  const claims = await claimPlacements(pool, {
    leaseId: randomUUID(),
    lost: [],
    limit: 400,
    share: 4,
    busy: [],
    senders: 100,
    oldest: 100,
    newest: 0,
    ...about,
  });
  return claims.map((each) => each.serviceOrderId).toSorted();
}

it('takes no more of a location than its share, with those that are under way', async () => {
  await backlog('club-1', 10, 60);
  await backlog('club-2', 10, 60);
  expect(await claim({ busy: ['club-1', 'club-1', 'club-1'] })).toEqual([
    'club-1-1',
    'club-2-1',
    'club-2-2',
    'club-2-3',
    'club-2-4',
  ]);
});

it('serves the locations in turn: one that waits for the first time goes before the backlog of others', async () => {
  await backlog('hung-1', 10, 600);
  await backlog('hung-2', 10, 600);
  await backlog('healthy', 1, 1);
  expect(await claim({ senders: 1, busy: ['hung-1', 'hung-2'] })).toEqual(['healthy-1']);
});

it('of those not fetched yet takes some of the newest, so that a backlog does not hold up the next order', async () => {
  await backlog(null, 50, 60);
  expect(await claim({ oldest: 2, newest: 1 })).toEqual(['new-1', 'new-2', 'new-50']);
});

it('takes along what a claim took whose answer was lost, and nothing of any other', async () => {
  await backlog('club-1', 1, 60);
  await backlog('club-2', 1, 60);
  const [lost, held] = [randomUUID(), randomUUID()];
  expect(await claim({ leaseId: lost, senders: 1 })).toEqual(['club-1-1']);
  expect(await claim({ leaseId: held, senders: 1 })).toEqual(['club-2-1']);
  expect(await claim({})).toEqual([]);
  expect(await claim({ lost: [lost] })).toEqual(['club-1-1']);
});
