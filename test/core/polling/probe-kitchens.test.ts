/**
 * A POS that does not answer is found by probes, and nothing else is called unreachable. Time is moved in the rows. A
 * second of these tests is ten in the database, so that the time that a slow machine takes does not count.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { credentialStore } from '../../../src/core/locations/credential-store.ts';
import { readAvailability, SETTLE, settleKitchens } from '../../../src/core/kitchens/settle-kitchens.ts';
import { settingsDecrypter } from '../../../src/core/locations/locations.ts';
import { pauseLocation } from '../../../src/core/kitchens/pause-location.ts';
import {
  CLAIM_PROBES,
  FIND_SUSPECTS,
  PROBE_TIMES,
  findSuspects,
  probeKitchens,
} from '../../../src/core/polling/probe-kitchens.ts';
import { patchLocation, putLocation } from '../../../src/core/locations/put-location.ts';
import { circuitBreaker } from '../../../src/core/placements/circuit-breaker.ts';
import { createLog } from '../../../src/observe/create-log.ts';
import { locationRules, plainProvider } from '../../support/location-rules.ts';
import { readPlans } from '../../support/read-plans.ts';
import { seedOrders } from '../../support/seed-rows.ts';
import { testPool } from '../../support/test-pool.ts';

const SCALE = 10;
const { again, later, calls, forgotten } = PROBE_TIMES;
const times = { again: again * SCALE, later: later * SCALE, calls: calls * SCALE, forgotten: forgotten * SCALE };
const unprobed = plainProvider('unprobed', { settings: z.object({ key: z.string().exactOptional() }) });
/** Its answer to a check. */
let check: () => Promise<void>;
let checks = 0;
const probed: Provider = {
  ...unprobed,
  integration: 'probed',
  checkProvesOrders: true,
  async check() {
    checks += 1;
    await check();
  },
};
/** Its check reads only the token. */
const token: Provider = { ...probed, integration: 'token', checkProvesOrders: false };
const silent = async (): Promise<void> => {
  throw new TryAgain('the connection was refused', { sent: false });
};

const pool = testPool({ max: 4 });
let locationId: string;
let silentLocations: { locationId: string }[];
let nth = 0;
const rules = locationRules(unprobed, probed, token, { ...probed, integration: 'rival' });

beforeEach(async () => {
  nth += 1;
  checks = 0;
  check = silent;
  silentLocations = [];
  await pool.query('DELETE FROM placements');
  await pool.query('DELETE FROM locations');
  locationId = await add(`kitchen-${nth}`, 'probed');
});

async function add(id: string, integration: string): Promise<string> {
  await putLocation(pool, rules, { locationId: id, integration, settings: {} });
  // It was created long ago.
  await pool.query(`UPDATE locations SET created_at = now() - interval '1 d' WHERE location_id = $1`, [id]);
  return id;
}
async function round(): Promise<string | undefined> {
  const deps = {
    pool,
    registry: rules.registry,
    decryptSettings: settingsDecrypter(rules),
    now: () => new Date(),
    credentialsFor: credentialStore(pool, rules.keys),
    posFetch: fetch,
    silentLocations: () => silentLocations,
  };
  await findSuspects(deps, times);
  await probeKitchens(deps, { stopping: new AbortController().signal, times });
  await settleKitchens(pool);
  return (await readAvailability(pool, [locationId]))[0]?.state;
}
/** An order has been tried, with a call that ended some seconds ago. */
async function tried(
  call: { outcome?: string; httpStatus?: number; cause?: string; state?: string } = {},
  secondsAgo = 1,
): Promise<void> {
  const id = `order-${nth}-${(await pool.query('SELECT FROM placements')).rowCount}`;
  const { outcome = 'TryAgain', httpStatus = null, cause = 'pos_silent', state = 'waiting' } = call;
  await pool.query(
    `WITH p AS (
       INSERT INTO placements (service_order_id, location_id, state, deadline_at, requested_at, attempts, cause, finished_at)
       VALUES ($1, $2, $3, now() + interval '1 h', now() - make_interval(secs => $4), 1, $5, $8)
     )
     INSERT INTO placement_attempts (service_order_id, attempt, call, ended_at, outcome, http_status)
     VALUES ($1, 1, 'createOrder', now() - make_interval(secs => $4), $6, $7)`,
    [
      id,
      locationId,
      state,
      secondsAgo * SCALE,
      { code: cause },
      outcome,
      httpStatus,
      state === 'sent' ? new Date() : null,
    ],
  );
}
/** Time passes: all that is known happened that much earlier. */
const pass = (seconds: number): Promise<unknown> =>
  pool.query(
    `WITH a AS (UPDATE placement_attempts SET ended_at = ended_at - make_interval(secs => $1)),
          s AS (UPDATE location_last_seen SET last_seen_at = last_seen_at - make_interval(secs => $1))
     UPDATE kitchens SET probe_at = probe_at - make_interval(secs => $1), probed_at = probed_at - make_interval(secs => $1),
       answered_at = answered_at - make_interval(secs => $1), unanswered_at = unanswered_at - make_interval(secs => $1),
       unreachable_since = unreachable_since - make_interval(secs => $1)`,
    [seconds * SCALE],
  );
/** An order was tried in vain, a probe got no answer, and the second one is due. */
async function probedOnce(): Promise<void> {
  await tried();
  await round();
  await pass(5);
}
const webhookCame = (id: string, integration: string): Promise<unknown> =>
  pool.query(
    `INSERT INTO location_last_seen (location_id, integration, last_seen_at) VALUES ($1, $2, now())
     ON CONFLICT (location_id) DO UPDATE SET last_seen_at = now()`,
    [id, integration],
  );

describe('a POS whose check proves that it takes orders', () => {
  it('is unreachable after two probes without an answer, five seconds apart', async () => {
    expect(await round()).toBe('open');
    expect(checks).toBe(0);
    await tried();
    expect(await round()).toBe('open');
    expect(await round()).toBe('open');
    expect(checks).toBe(1);
    await pass(5);
    expect(await round()).toBe('unreachable');
    expect(checks).toBe(2);
  });

  it('is probed every thirty seconds while it is unreachable, and is open after its answer', async () => {
    await probedOnce();
    await round();
    await pass(25);
    expect(await round()).toBe('unreachable');
    expect(checks).toBe(2);
    await pass(5);
    expect(await round()).toBe('unreachable');
    expect(checks).toBe(3);
    check = async () => {};
    await pass(30);
    expect(await round()).toBe('open');
    // The call without an answer is older than this answer.
    expect(await round()).toBe('open');
    expect(checks).toBe(4);
  });

  it.each([
    ['answers', async () => {}],
    ['answers that we are not allowed', () => Promise.reject(new NeedsOperator('401', { httpStatus: 401 }))],
    ['asks us to wait', () => Promise.reject(new TryAgain('429', { sent: false, httpStatus: 429 }))],
    [
      'is not asked because of a limit of our own',
      () => Promise.reject(new TryAgain('', { sent: false, retryAfterMs: 9 })),
    ],
    ['has a faulty provider', () => Promise.reject(new TypeError('undefined is not a function'))],
  ])('stays open if it %s', async (_, answer) => {
    check = answer;
    await tried({ httpStatus: 503 });
    await round();
    await pass(40);
    await tried({ httpStatus: 503 });
    expect(await round()).toBe('open');
    expect(checks).toBe(2);
  });

  it('is probed at most every thirty seconds while it answers orders with errors', async () => {
    check = async () => {};
    await tried({ httpStatus: 500 });
    await tried({ httpStatus: 500 });
    await round();
    await pass(10);
    await tried({ httpStatus: 500 });
    await tried({ httpStatus: 500 });
    await round();
    await round();
    expect(checks).toBe(1);
    await pass(20);
    await round();
    expect(checks).toBe(2);
  });

  it('needs two more probes to be unreachable if it answered after the first one', async () => {
    await tried();
    await round();
    await webhookCame(locationId, 'probed');
    await pass(5);
    await tried({}, 0);
    expect(await round()).toBe('open');
    expect(checks).toBe(2);
  });

  it.each(['a webhook', 'an answered call', 'other settings'])('is reachable again after %s', async (proof) => {
    await probedOnce();
    expect(await round()).toBe('unreachable');
    if (proof === 'a webhook') await webhookCame(locationId, 'probed');
    else if (proof === 'an answered call') await tried({ outcome: 'placed', state: 'sent' }, 0);
    else await putLocation(pool, rules, { locationId, integration: 'probed', settings: { key: 'other' } });
    expect(await round()).toBe('open');
  });

  it("that is unreachable does not become reachable when its location's name or contacts change", async () => {
    await probedOnce();
    await patchLocation(pool, rules, locationId, { name: 'Trattoria Nord', contacts: [{ phone: '+4930123456' }] });
    expect(await round()).toBe('unreachable');
  });

  it.each([
    { outcome: 'placed' },
    { outcome: 'NeedsOperator' },
    { outcome: 'GiveUp', httpStatus: 400 },
    { outcome: 'TryAgain', httpStatus: 429 },
    { outcome: 'unknown' },
    { outcome: 'not_sent' },
    { outcome: 'TryAgain', cause: 'pos_busy' },
    { outcome: 'TryAgain', state: 'held' },
  ])('is not probed after a call that does not mean silence: %o', async (call) => {
    await tried(call);
    await round();
    expect(checks).toBe(0);
  });

  it('is probed if its vendor counts as down after ten locations without an answer', async () => {
    const breaker = circuitBreaker(createLog('silent', { write() {} }));
    const error = new TryAgain('no answer', { sent: false });
    for (let other = 0; other < 10; other += 1) {
      silentLocations = breaker.silentLocations();
      await round();
      expect(checks).toBe(0);
      const called = other === 0 ? locationId : `other-${other}`;
      breaker.callEnded({ locationId: called, integration: 'probed' }, performance.now(), error);
    }
    silentLocations = breaker.silentLocations();
    await round();
    expect(checks).toBe(1);
  });

  it('is probed if it has reported no ticket for ten minutes while three other locations of its vendor report theirs', async () => {
    await pool.query(`DELETE FROM orders WHERE service_order_id = 'ticket'`);
    await seedOrders(pool, ['ticket'], {
      locationId,
      order: { integration: 'probed', rank: 10 },
      placement: { state: 'sent', finished_at: new Date(Date.now() - 630_000) },
    });
    for (const other of ['a', 'b']) await webhookCame(await add(`${other}-${nth}`, 'probed'), 'probed');
    await round();
    expect(checks).toBe(0);
    await webhookCame(await add(`c-${nth}`, 'probed'), 'probed');
    await round();
    expect(checks).toBe(1);
  });

  it('is probed in the next round, even if another vendor has more POS systems than fit into a round', async () => {
    await pool.query(
      `WITH l AS (
         INSERT INTO locations (location_id, integration, settings, created_at)
         SELECT 'rival-' || n, 'rival', 'x', now() - interval '1 d' FROM generate_series(1, 301) AS n RETURNING location_id
       )
       INSERT INTO kitchens (location_id, since, unanswered_at, probe_at)
       SELECT location_id, now(), now() - interval '2 min', now() - interval '1 min' FROM l`,
    );
    await tried();
    await round();
    expect(checks).toBe(1);
  });

  it('is probed only once if two processes probe at the same time', async () => {
    await tried();
    await Promise.all([round(), round()]);
    expect(checks).toBe(1);
  });

  it('is not probed after its location was removed', async () => {
    await tried();
    await round();
    await pool.query('DELETE FROM locations WHERE location_id = $1', [locationId]);
    await pass(5);
    expect(await round()).toBeUndefined();
    expect(checks).toBe(1);
  });

  it('is closed if it is paused and silent', async () => {
    await probedOnce();
    await pauseLocation(pool, locationId);
    expect(await round()).toBe('closed');
  });
});

describe.each(['unprobed', 'token'])('a POS whose check does not prove that it takes orders (%s)', (integration) => {
  beforeEach(async () => {
    locationId = await add(`${integration}-${nth}`, integration);
    check = async () => {};
  });

  it('is unreachable after two unanswered calls ten seconds apart, while orders wait and for five minutes after that', async () => {
    await tried({}, 9);
    await tried({}, 1);
    expect(await round()).toBe('open');
    await tried({ httpStatus: 502 }, 12);
    expect(await round()).toBe('unreachable');
    await pass(290);
    expect(await round()).toBe('unreachable');
    await pass(10);
    expect(await round()).toBe('unreachable');
    await pool.query(`UPDATE placements SET state = 'failed', finished_at = now()`);
    expect(await round()).toBe('open');
  });

  it('is unreachable for all processes after one unanswered call while its vendor counts as down', async () => {
    await tried();
    expect(await round()).toBe('open');
    silentLocations = [{ locationId }];
    expect(await round()).toBe('unreachable');
    silentLocations = [];
    expect(await round()).toBe('unreachable');
  });

  it('stays reachable after one unanswered call and another call that our own rate limiter did not send', async () => {
    await tried({}, 15);
    await tried({ outcome: 'not_sent', cause: 'pos_busy' }, 3);
    // As the previous version records it.
    await tried({ cause: 'pos_busy' }, 1);
    expect(await round()).toBe('open');
  });

  it('stays reachable after unanswered calls for orders that the platform has moved there from another location', async () => {
    await tried({}, 15);
    await tried({}, 1);
    await pool.query('UPDATE placements SET moved_at = now()');
    expect(await round()).toBe('open');
  });

  it('stays reachable if a call between the two unanswered calls was answered', async () => {
    await tried({}, 30);
    await tried({ outcome: 'placed', state: 'sent' }, 20);
    await tried({}, 1);
    expect(await round()).toBe('open');
  });

  it('is unreachable only if it answers 500 for two orders, and not if it answers 500 for one order twice', async () => {
    await tried({}, 40);
    await tried({ outcome: 'placed', state: 'sent' }, 30);
    await tried({ httpStatus: 500 }, 20);
    await pool.query(
      `INSERT INTO placement_attempts (service_order_id, attempt, call, ended_at, outcome, http_status)
       SELECT service_order_id, 2, call, now(), outcome, http_status FROM placement_attempts WHERE http_status = 500`,
    );
    await tried({}, 1);
    expect(await round()).toBe('open');
    await tried({ httpStatus: 500 }, 1);
    expect(await round()).toBe('unreachable');
  });

  it('is reachable again after an answered call', async () => {
    await tried({}, 30);
    await tried({}, 15);
    expect(await round()).toBe('unreachable');
    expect(checks).toBe(0);
    await tried({ outcome: 'placed', state: 'sent' }, 1);
    expect(await round()).toBe('open');
  });
});

it('a round of probes reads only current retries, however many orders and locations there are', async () => {
  await pool.query(
    `INSERT INTO locations (location_id, integration, settings)
     SELECT 'many-' || n, 'probed', 'x' FROM generate_series(1, 5000) AS n`,
  );
  await pool.query(
    `WITH p AS (
       INSERT INTO placements (service_order_id, location_id, state, deadline_at, next_attempt_at, requested_at, attempts, finished_at, signalled_at)
       SELECT 'many-' || n, 'many-' || n % 5000, CASE WHEN n % 3 = 0 THEN 'waiting' ELSE 'sent' END, now(),
              now() - interval '1 h', now() - interval '1 h', 1, CASE WHEN n % 3 > 0 THEN now() - interval '1 h' END,
              now() - interval '1 h'
       FROM generate_series(1, 30000) AS n RETURNING service_order_id
     )
     INSERT INTO placement_attempts (service_order_id, attempt, call, ended_at, outcome)
     SELECT service_order_id, 1, 'createOrder', now() - interval '1 h', 'placed' FROM p`,
  );
  await pool.query(
    `INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank)
     SELECT service_order_id, 'K472', location_id, 'probed', 'pickup', 10 FROM placements`,
  );
  await pool.query(
    `INSERT INTO location_last_seen SELECT location_id, 'probed', now() FROM locations WHERE location_id LIKE 'many-%'`,
  );
  await pool.query('ANALYZE');
  await tried();
  const plans = await readPlans(pool, async (recording) => {
    await recording.query(SETTLE, [null]);
    await recording.query(FIND_SUSPECTS, [['probed'], [], 30, 10, 300]);
    await recording.query(CLAIM_PROBES);
  });
  // It stops at the third location of a vendor that reports.
  expect(plans.whole.filter((table) => !['kitchens', 'location_last_seen'].includes(table))).toEqual([]);
  expect(plans.reads).toBeLessThan(100);
});
