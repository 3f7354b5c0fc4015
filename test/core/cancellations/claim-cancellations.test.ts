import { expect, it } from 'vitest';
import { claimCancellations } from '../../../src/core/cancellations/claim-cancellations.ts';
import { sweepCancellations } from '../../../src/core/cancellations/sweep-cancellations.ts';
import { endDied } from '../../../src/core/cancellations/begin-cancellation.ts';
import { concludeCancellation, releaseCancellation } from '../../../src/core/cancellations/conclude-cancellation.ts';
import { problemOf } from '../../../src/core/domain/explain-cause.ts';
import { findNotices } from '../../../src/core/notices/find-notices.ts';
import { NEEDS_OPERATOR } from '../../../src/core/orders/needs-operator.ts';
import { testPool } from '../../support/test-pool.ts';

const pool = testPool();

/** Orders that are at their POS, each at a location of its own, two at the last. */
async function seed(integration: string, count: number): Promise<void> {
  await pool.query(
    `WITH s AS (SELECT $1 || '-' || nth AS id, $1 || '-' || least(nth, $2 - 1) AS place FROM generate_series(1, $2) AS nth),
          l AS (INSERT INTO locations (location_id, integration, settings) SELECT DISTINCT place, $1, '' FROM s),
          p AS (INSERT INTO placements (service_order_id, location_id, state, deadline_at, finished_at)
                SELECT id, place, 'sent', now(), now() FROM s),
          o AS (INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence)
                SELECT id, 'K472', place, $1, 'pickup', 10, 2 FROM s)
     INSERT INTO cancellations (service_order_id, location_id, requested_by, deadline_at)
     SELECT id, place, 'platform', now() + interval '1 h' FROM s`,
    [integration, count],
  );
}

const claim = async (about: { busy?: string[]; open?: string[] } = {}): Promise<Record<string, number>> => {
  const claimed = await claimCancellations(pool, { limit: 100, busy: [], open: [], ...about });
  const byPlace = Map.groupBy(claimed, ({ locationId }) => locationId);
  for (const [place, each] of byPlace) expect(each, place).toHaveLength(1);
  return Object.fromEntries(
    [...Map.groupBy(claimed, ({ integration }) => integration ?? '')].map(([name, each]) => [name, each.length]),
  );
};
const release = (): Promise<unknown> => pool.query('UPDATE cancellations SET lease_until = NULL, lease_id = NULL');

it('a claim takes one cancellation of each location and a limited share of each integration, which is smaller while the integration is silent', async () => {
  await seed('hangs', 50);
  await seed('works', 5);
  expect(await claim({ open: ['hangs'] })).toEqual({ hangs: 4, works: 4 });
  await release();
  expect(await claim({ busy: ['hangs', 'hangs', 'hangs'], open: ['hangs'] })).toEqual({ hangs: 1, works: 4 });
  await release();
  expect(await claim()).toEqual({ hangs: 32, works: 4 });
  // Two orders at one location: the other waits, whichever process asks.
  expect((await claim())['works']).toBeUndefined();
  await pool.query(
    `UPDATE cancellations SET next_attempt_at = now() - interval '1 h' WHERE location_id = 'works-4' AND lease_id IS NULL`,
  );
  expect((await claim())['works']).toBeUndefined();
  await release();
  const both = await Promise.all([claim(), claim()]);
  expect(both.map((each) => each['works'] ?? 0).toSorted((a, b) => a - b)).toEqual([0, 4]);
});

it("a cancel in doubt stays in doubt after a fault of Postgres or while the location's settings cannot be decrypted", async () => {
  await seed('dies', 2);
  const claims = await claimCancellations(pool, { limit: 100, busy: [], open: [] });
  const mine = claims.filter(({ integration }) => integration === 'dies').slice(0, 1);
  const states = async (): Promise<unknown> =>
    (await pool.query('SELECT state FROM cancellations WHERE service_order_id = $1', [mine[0]?.serviceOrderId])).rows;
  for (const claimed of mine) {
    await endDied(pool, claimed);
    await releaseCancellation(pool, claimed);
    expect(await states()).toEqual([{ state: 'in_doubt' }]);
    await pool.query('UPDATE cancellations SET lease_id = $2 WHERE service_order_id = $1', [
      claimed.serviceOrderId,
      claimed.leaseId,
    ]);
    const deps = { pool, observe: () => {}, onLive: () => {} };
    await concludeCancellation(deps, claimed, { do: 'try later', isOurs: true, ...problemOf({ code: 'no_location' }) });
    expect(await states()).toEqual([{ state: 'in_doubt' }]);
  }
});

it('all cancellations need a person as soon as their deadline passes, however many wait for a turn', async () => {
  await pool.query('DELETE FROM cancellations');
  await seed('gone', 60);
  expect(await claim()).toEqual({ gone: 32 });
  await pool.query(
    `WITH a AS (INSERT INTO placement_attempts (service_order_id, attempt, call)
                SELECT service_order_id, 1, 'cancelOrder' FROM cancellations)
     UPDATE cancellations SET deadline_at = now() - interval '1 s', problem = CASE WHEN lease_id IS NULL THEN 'no answer' END`,
  );
  const swept = await sweepCancellations(pool);
  expect(swept).toHaveLength(28);
  expect(swept[0]).toMatchObject({
    integration: 'gone',
    outcome: 'by_phone',
    problem: expect.stringMatching(/in time to cancel the order: no answer$/) as string,
    cause: { code: 'cancel_deadline_passed' },
  });
  // Their processes died during the calls.
  await pool.query(`UPDATE cancellations SET lease_until = now() - interval '1 s' WHERE lease_id IS NOT NULL`);
  expect(await sweepCancellations(pool)).toHaveLength(32);
  expect(await sweepCancellations(pool)).toEqual([]);
  expect(await claim()).toEqual({});
  const { rows } = await pool.query('SELECT DISTINCT state FROM cancellations');
  expect(rows).toEqual([{ state: 'by_phone' }]);
  const { rows: open } = await pool.query('SELECT FROM placement_attempts WHERE ended_at IS NULL');
  expect(open).toEqual([]);
});

it("no worker takes a cancellation past its deadline whose POS hangs, and the restaurant's contacts get a notice", async () => {
  await pool.query('DELETE FROM cancellations');
  await seed('mute', 40);
  await pool.query(`UPDATE orders SET cancellation = 'requested' WHERE integration = 'mute'`);
  await pool.query(`UPDATE locations SET contacts = '[{"name": "K", "email": "k@nord.example", "via": "email"}]'`);
  const claims = await claimCancellations(pool, { limit: 100, busy: [], open: [] });
  await pool.query('UPDATE cancellations SET deadline_at = now()');
  // The calls hung until then.
  const deps = { pool, observe: () => {}, onLive: () => {} };
  const late = { do: 'try later', ...problemOf({ code: 'pos_silent' }) } as const;
  for (const each of claims) await concludeCancellation(deps, each, late);
  expect(await claim()).toEqual({});
  expect(await sweepCancellations(pool)).toHaveLength(40);
  const { rows } = await pool.query(
    `SELECT FROM placements p JOIN orders o USING (service_order_id) WHERE o.integration = 'mute' AND ${NEEDS_OPERATOR}`,
  );
  expect(rows).toHaveLength(40);
  expect(await findNotices(pool)).toBe(39);
  expect((await pool.query('SELECT FROM notices WHERE message_id IS NOT NULL')).rowCount).toBe(40);
});
