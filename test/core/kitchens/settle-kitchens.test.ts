/** What is said of a kitchen becomes one availability, and the latest one is published, in order. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Availability } from '../../../src/core/domain/availability.ts';
import type { Observed } from '../../../src/core/domain/observed.ts';
import type { KitchenReport } from '../../../src/core/domain/webhook.ts';
import {
  endBusy,
  makeBusy,
  publishKitchens,
  readAvailability,
  settleKitchens,
  showAvailability,
} from '../../../src/core/kitchens/settle-kitchens.ts';
import { findLocation } from '../../../src/core/locations/locations.ts';
import { pauseLocation, resumeLocation } from '../../../src/core/kitchens/pause-location.ts';
import { putLocation } from '../../../src/core/locations/put-location.ts';
import { removeLocation } from '../../../src/core/locations/remove-location.ts';
import { inTransaction, LOCK_KITCHENS, withClient } from '../../../src/core/postgres/transactions.ts';
import { applyWebhooks } from '../../../src/core/statuses/apply-webhooks.ts';
import { locationRules, plainProvider } from '../../support/location-rules.ts';
import { insertRows } from '../../support/seed-rows.ts';
import { testPool } from '../../support/test-pool.ts';
import { translatedWebhook } from '../../support/translated-webhook.ts';
import { until } from '../../../world/processes/until.ts';
import { untilLocked } from '../../support/until-locked.ts';

const HOUR_MS = 3_600_000;
const pool = testPool({ max: 6 });
const observed: Observed[] = [];
const deps = { pool, observe: (event: Observed) => void observed.push(event) };
const rules = locationRules(plainProvider('acme'), plainProvider('other'));
let locationId: string;
let nth = 0;

beforeEach(async () => {
  nth += 1;
  locationId = `kitchen-${nth}`;
  await create(locationId);
});
/** As if with settings that are not read here. */
const create = (id: string): Promise<void> =>
  insertRows(pool, 'locations', [{ location_id: id, integration: 'acme', settings: 'sealed' }]);

const inAnHour = (): Date => new Date(Date.now() + HOUR_MS);
/** The POS reports. @param receivedAt when the webhook came */
async function report(kitchen: KitchenReport | undefined, receivedAt = new Date(), revokedAt?: Date): Promise<unknown> {
  const webhook = translatedWebhook([], { locationId, integration: 'acme', receivedAt, kitchen, revokedAt });
  return (await withClient(pool, (client) => applyWebhooks(client, [webhook]))).webhooks[0];
}
async function now(): Promise<Availability> {
  const [availability] = await readAvailability(pool, [locationId]);
  if (availability === undefined) throw new Error('no such location');
  return availability;
}
async function settled(): Promise<Availability> {
  await settleKitchens(pool);
  return now();
}
const silence = (): Promise<unknown> =>
  pool.query(
    `INSERT INTO kitchens AS k (location_id, since, unreachable_since) VALUES ($1, now(), now())
     ON CONFLICT (location_id) DO UPDATE SET unreachable_since = now()`,
    [locationId],
  );

describe('a kitchen', () => {
  it('is open and has no row until somebody reports something about the kitchen', async () => {
    expect(await settled()).toMatchObject({ state: 'open', source: 'inferred', until: null, sequence: 0 });
    expect((await pool.query('SELECT FROM kitchens WHERE location_id = $1', [locationId])).rowCount).toBe(0);
  });

  it('is busy until the time and with the extra minutes that its POS reports', async () => {
    const end = inAnHour();
    expect(await report({ state: 'busy', until: end, extraMinutes: 20 })).toBe('applied');
    const busy = await settled();
    expect(busy).toMatchObject({ state: 'busy', source: 'pos', extraMinutes: 20 });
    expect(Date.parse(busy.until ?? '')).toBe(end.getTime());
    expect(await findLocation(pool, locationId)).toMatchObject({ extraMinutes: 20, paused: false });
  });

  it.each(['open', 'closed'] as const)('is no longer busy when its POS reports that it is %s', async (state) => {
    await report({ state: 'busy', until: inAnHour(), extraMinutes: 20 });
    await settled();
    await report(state === 'open' ? { state } : { state, until: inAnHour() });
    expect(await settled()).toMatchObject({ state, source: 'pos', extraMinutes: null });
    expect(await findLocation(pool, locationId)).toMatchObject({ extraMinutes: null });
  });

  it('ignores a report that is older than the last one, or whose end is over', async () => {
    const before = new Date(Date.now() - 1_000);
    await report({ state: 'busy', until: inAnHour(), extraMinutes: 20 });
    expect(await report({ state: 'busy', until: inAnHour(), extraMinutes: 5 }, before)).toBe('stale');
    expect(await report({ state: 'busy', until: new Date(Date.now() - 1) })).toBe('stale');
    expect(await settled()).toMatchObject({ extraMinutes: 20 });
  });

  it('stays busy when the restaurant withdraws our access', async () => {
    await report({ state: 'busy', until: inAnHour(), extraMinutes: 20 });
    expect(await report(undefined, new Date(), new Date())).toBe('applied');
    expect(await settled()).toMatchObject({ state: 'busy', extraMinutes: 20 });
  });

  it('opens automatically when its busy time is over, with the POS as the source', async () => {
    await report({ state: 'busy', until: inAnHour() });
    const busy = await settled();
    expect(busy).toMatchObject({ state: 'busy', extraMinutes: null });
    await pool.query('UPDATE locations SET pos_busy_until = now() WHERE location_id = $1', [locationId]);
    const open = await settled();
    expect(open).toMatchObject({ state: 'open', source: 'pos', until: null });
    expect(open.sequence).toBeGreaterThan(busy.sequence);
    expect(Date.parse(open.since)).toBeGreaterThan(Date.parse(busy.since));
  });

  it('has the first state that applies: closed, unreachable, busy, open', async () => {
    await report({ state: 'busy', until: inAnHour(), extraMinutes: 20 });
    expect(await settled()).toMatchObject({ state: 'busy' });
    await silence();
    expect(await settled()).toMatchObject({ state: 'unreachable', source: 'inferred', until: null });
    await pauseLocation(pool, locationId, { by: 'Anna', minutes: 30 });
    expect(await settled()).toMatchObject({ state: 'closed', source: 'operator', until: expect.any(String) });
    await resumeLocation(pool, locationId);
    expect(await settled()).toMatchObject({ state: 'unreachable', source: 'inferred' });
    await pool.query('UPDATE kitchens SET unreachable_since = NULL WHERE location_id = $1', [locationId]);
    // Who resumes a location says that it is not busy either.
    expect(await settled()).toMatchObject({ state: 'open', source: 'inferred' });
  });

  it('stays busy as an operator set it, whatever its POS reports, until the operator ends the busy time', async () => {
    await report({ state: 'busy', until: inAnHour(), extraMinutes: 20 });
    const about = { extraMinutes: 45, by: 'Anna', reason: 'One cook is ill' };
    expect(await makeBusy(deps, locationId, about)).toMatchObject({
      state: 'busy',
      source: 'operator',
      until: null,
      ...about,
    });
    expect(observed.at(-1), 'it is logged like the word of a POS').toMatchObject({
      what: 'kitchen',
      locationId,
      state: 'busy',
      source: 'operator',
      extraMinutes: 45,
    });
    await report({ state: 'open' });
    expect(await settled()).toMatchObject({ state: 'busy', extraMinutes: 45 });
    await report({ state: 'busy', until: inAnHour(), extraMinutes: 20 });
    expect(await endBusy(deps, locationId)).toMatchObject({ state: 'open', source: 'operator', by: null });
    expect(await makeBusy(deps, 'nowhere', about)).toBeUndefined();
  });

  it('loses the state that its previous POS reported when its location moves to another POS', async () => {
    await report({ state: 'busy', until: inAnHour(), extraMinutes: 20 });
    await settled();
    await putLocation(pool, rules, { locationId, integration: 'other', settings: {} });
    expect(await settled()).toMatchObject({ state: 'open', integration: 'other' });
  });

  it('is written by one process at a time, and only if its state changed', async () => {
    await report({ state: 'closed', until: inAnHour() });
    await inTransaction(pool, async (client) => {
      await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK_KITCHENS]);
      expect(await settleKitchens(pool)).toEqual([]);
    });
    expect((await settleKitchens(pool)).map((each) => each.locationId)).toContain(locationId);
    expect(await settleKitchens(pool)).toEqual([]);
  });

  it('keeps a change by an operator, even if another process writes the kitchen at that moment', async () => {
    let made: Promise<unknown> | undefined;
    await inTransaction(pool, async (client) => {
      await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK_KITCHENS]);
      made = makeBusy(deps, locationId, { extraMinutes: 10, by: 'Anna' });
      await untilLocked(pool);
      expect(await now()).toMatchObject({ state: 'open' });
    });
    expect(await made).toMatchObject({ state: 'busy' });
  });

  it('gets a higher sequence number even if its location was removed and created again', async () => {
    await report({ state: 'closed', until: inAnHour() });
    const { sequence } = await settled();
    await pool.query('DELETE FROM locations WHERE location_id = $1', [locationId]);
    await create(locationId);
    await report({ state: 'closed', until: inAnHour() });
    expect((await settled()).sequence).toBeGreaterThan(sequence);
  });

  it('is found by its integration and its state on all pages of the list', async () => {
    await makeBusy(deps, locationId, { extraMinutes: 10, by: 'Anna' });
    const list = async (state: Availability['state'], after?: string): Promise<string[]> =>
      (await showAvailability(pool, { integration: 'acme', state }, { after, limit: 2 })).map(
        (each) => each.locationId,
      );
    const open = await list('open');
    expect(open).toHaveLength(2);
    expect(open).not.toContain(locationId);
    expect(await list('open', open.at(-1))).not.toContain(open[0]);
    expect(await list('busy')).toContain(locationId);
  });
});

describe('publishing of availability', () => {
  const published: Availability[] = [];
  const observed: Observed[] = [];
  let answer: (availability: Availability) => Promise<void>;
  beforeEach(async () => {
    answer = async () => {};
    await pool.query('UPDATE kitchens SET published_sequence = sequence');
  });
  const publisher = (): ReturnType<typeof publishKitchens> =>
    publishKitchens({
      pool,
      async publish(availability) {
        published.push(availability);
        await answer(availability);
      },
      observe: (each) => void observed.push(each),
      log: { error: () => {} },
    });
  const ofThis = (): Availability[] => published.filter((each) => each.locationId === locationId);
  const row = async (): Promise<{ failures: number; isDone: boolean; isSoon: boolean }> => {
    const { rows } = await pool.query<{ failures: number; isDone: boolean; isSoon: boolean }>(
      `SELECT failures, published_sequence = sequence AS "isDone", lease_until < now() + interval '1 s' AS "isSoon"
       FROM kitchens WHERE location_id = $1`,
      [locationId],
    );
    if (rows[0] === undefined) throw new Error('no row');
    return rows[0];
  };

  it('publishes only the latest state of a kitchen, and only once', async () => {
    await report({ state: 'closed', until: inAnHour() });
    await settled();
    await report({ state: 'busy', until: inAnHour(), extraMinutes: 20 });
    const busy = await settled();
    await publisher().round();
    expect(ofThis()).toEqual([busy]);
    expect(await row()).toMatchObject({ isDone: true });
  });

  it('publishes the states of one kitchen one after another, and delays no other kitchen', async () => {
    const first = Promise.withResolvers<void>();
    await makeBusy(deps, locationId, { extraMinutes: 10, by: 'Anna' });
    answer = async ({ locationId: of }) => (of === locationId ? first.promise : undefined);
    const slow = publisher().round();
    await until(() => ofThis().length === 1);
    await makeBusy(deps, locationId, { extraMinutes: 30, by: 'Anna' });
    // Another kitchen passes it.
    const other = `${locationId}-other`;
    await create(other);
    await insertRows(pool, 'kitchens', [{ location_id: other, since: 'now', sequence: 1 }]);
    await publisher().round();
    expect(published.at(-1)).toMatchObject({ locationId: other });
    expect(ofThis()).toHaveLength(1);
    first.resolve();
    await slow;
    await publisher().round();
    expect(await row()).toMatchObject({ isDone: true });
    expect(ofThis().map((each) => each.extraMinutes)).toEqual([10, 30]);
  });

  it('is tried again if the topic refuses a state', async () => {
    await makeBusy(deps, locationId, { extraMinutes: 10, by: 'Anna' });
    answer = async () => {
      throw new Error('no topic');
    };
    await publisher().round();
    expect(await row()).toMatchObject({ failures: 1, isDone: false, isSoon: true });
    expect(observed).toContainEqual(expect.objectContaining({ work: 'publishing of availability', outcome: 'failed' }));
    answer = async () => {};
    await pool.query('UPDATE kitchens SET lease_until = now() WHERE location_id = $1', [locationId]);
    await publisher().round();
    expect(await row()).toMatchObject({ failures: 0, isDone: true });
  });

  it('publishes a removed location once as closed, and as open if it is created again', async () => {
    await makeBusy(deps, locationId, { extraMinutes: 10, by: 'Anna' });
    await publisher().round();
    expect(await removeLocation(pool, locationId, { unpaused: true })).toEqual({ tokens: 0 });
    await publisher().round();
    await putLocation(pool, rules, { locationId, integration: 'acme', settings: {} });
    for (const _twice of [1, 2]) await publisher().round();
    expect(await row()).toMatchObject({ isDone: true });
    expect(ofThis()).toHaveLength(3);
    const [busy, closed, open] = ofThis();
    expect(closed).toEqual({
      ...busy,
      state: 'closed',
      extraMinutes: null,
      since: expect.any(String),
      sequence: expect.any(Number),
    });
    expect(open).toMatchObject({ state: 'open', source: 'inferred' });
    const sequences = ofThis().map((each) => each.sequence);
    expect(sequences).toEqual([...new Set(sequences)].toSorted((a, b) => a - b));
    expect(Availability.safeParse(closed).success).toBe(true);
  });

  it.each([
    ['was published', true],
    ['could not be published', false],
  ])('records no result after its process lost the lease, although the state %s', async (_what, isPublished) => {
    await makeBusy(deps, locationId, { extraMinutes: 10, by: 'Anna' });
    const slow = Promise.withResolvers<void>();
    answer = () => slow.promise;
    const publishing = publisher().round();
    await until(() => ofThis().length === 1);
    await pool.query('UPDATE kitchens SET lease_id = gen_random_uuid() WHERE location_id = $1', [locationId]);
    if (isPublished) slow.resolve();
    else slow.reject(new Error('no topic'));
    await publishing;
    expect(await row()).toMatchObject({ isDone: false, failures: 0 });
  });
});
