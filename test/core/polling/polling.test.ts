import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { statusPoller, type StatusPoller } from '../../../src/core/polling/status-poller.ts';
import { claimQuietOrders } from '../../../src/core/polling/claim-quiet-orders.ts';
import { TryAgain } from '../../../src/core/domain/errors.ts';
import type { StatusEvent } from '../../../src/core/domain/order.ts';
import type { Observed } from '../../../src/core/domain/observed.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { credentialStore } from '../../../src/core/locations/credential-store.ts';
import { issueToken } from '../../../src/core/locations/webhook-tokens.ts';
import { settingsDecrypter } from '../../../src/core/locations/locations.ts';
import { parseSettingsKeys } from '../../../src/core/locations/settings-key.ts';
import { circuitBreaker } from '../../../src/core/placements/circuit-breaker.ts';
import { inTransaction, LOCK_POLL, withClient } from '../../../src/core/postgres/transactions.ts';
import { replayWebhook } from '../../../src/core/replay/replay-webhook.ts';
import { eraseOrders } from '../../../src/core/retention/erase-members.ts';
import { SHARED_ENV } from '../../../world/system/fixtures.ts';
import { readPlans } from '../../support/read-plans.ts';
import { AHEAD, prepareClock } from '../../../world/processes/move-clock.ts';
import { post, startSystem, type System } from '../../../world/system/start-system.ts';
import { until } from '../../../world/processes/until.ts';
import { untilLocked } from '../../support/until-locked.ts';

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const keys = parseSettingsKeys(SHARED_ENV.SETTINGS_KEY);

/** What the POS says of an order by its id when it is asked, or what it throws. */
const says = new Map<string, readonly Partial<StatusEvent>[] | Error | undefined>();
/** The orders that it was asked about. */
let asked: string[] = [];

/** A till that takes any order, and sends what it is told to as its webhooks. */
const till: Provider = {
  integration: 'till',
  settings: z.object({}),
  deduplicates: true,
  createOrder: ({ serviceOrderId }) => Promise.resolve({ providerOrderId: `pos-${serviceOrderId}` }),
  translateWebhook: ({ body }) => (JSON.parse(body.toString()) as { says: StatusEvent[] }).says,
  async readStatus(_ref, { serviceOrderId }) {
    asked.push(serviceOrderId);
    const said = says.get(serviceOrderId);
    if (said instanceof Error) throw said;
    return said?.map((event) => ({ status: 'received', nativeStatus: 'SAYS SO', serviceOrderId, ...event }));
  },
};
const neverAnswers = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));

let system: System;
let observed: Observed[] = [];
let breaker = circuitBreaker({ info() {}, warn() {}, error() {} });
const rules = { registry: new Map([['till', till]]), keys, publicUrl: undefined };

const asker = (registry = rules.registry): StatusPoller =>
  statusPoller({
    pool: system.pool,
    registry,
    decryptSettings: settingsDecrypter({ ...rules, registry }),
    now: () => new Date(),
    credentialsFor: credentialStore(system.pool, keys),
    posFetch: fetch,
    breaker,
    observe: (each) => void observed.push(each),
    onApplied() {},
  });
/** Asks, and waits for all answers. @returns the orders that the till has been asked about */
const ask = async (registry = rules.registry): Promise<string[]> => {
  const before = outcomes().length;
  const count = await asker(registry).poll();
  await until(() => outcomes().length >= before + count);
  return asked;
};
const pass = (seconds: number): Promise<unknown> => system.query(AHEAD, [seconds]);
/** Asks for a while. @returns how often the till was asked */
const askEachMinute = async (minutes: number, every = 1): Promise<number> => {
  asked = [];
  for (let minute = 0; minute < minutes; minute += every) {
    await ask();
    await pass(every * MINUTE);
  }
  return asked.length;
};
let locations = 0;
const addTill = async (): Promise<string> => {
  const locationId = `till-${(locations += 1)}`;
  await system.addLocation(locationId, {}, 'till');
  return locationId;
};
/** An order at a till of its own. */
const placeAlone = async (): Promise<{ locationId: string; id: string }> => {
  const locationId = await addTill();
  return { locationId, id: await placeAt(locationId) };
};
const placeAt = async (locationId: string, requestedAt?: string): Promise<string> => {
  const { serviceOrderId } = await system.placeOrder({
    locationId,
    ...(requestedAt !== undefined && { fulfillment: { type: 'pickup', requestedAt } }),
  });
  await system.finish('placements');
  return serviceOrderId;
};
const webhook = async (locationId: string, event: Partial<StatusEvent>): Promise<void> => {
  const { token } = await issueToken(system.pool, { locationId });
  const url = `${system.urls[0]}/webhook/till/${locationId}?token=${token}`;
  expect(await post(url, { says: [{ nativeStatus: 'SENT', ...event }] })).toMatchObject({ status: 200 });
};
const statusOf = async (serviceOrderId: string): Promise<unknown> => (await system.order(serviceOrderId))?.['status'];
const outcomes = (): unknown[] => observed.flatMap((each) => (each.what === 'poll' ? [each.outcome] : []));

beforeAll(async () => {
  system = await startSystem({
    stepped: ['placements', 'relay', 'refreshes', 'cancellations'],
    providers: [till],
    prepare: prepareClock,
    // A push's token would be of a long time ago, once the clock was moved.
    env: { PUSH_AUTH: 'off' },
  });
});
afterAll(() => system.stop());
beforeEach(async () => {
  await system.query('UPDATE orders SET ended_at = now() WHERE ended_at IS NULL');
  says.clear();
  asked = [];
  observed = [];
  breaker = circuitBreaker({ info() {}, warn() {}, error() {} });
});

it('an order that was sent but not received within three minutes is polled, and the answer is published', async () => {
  const { locationId, id } = await placeAlone();
  says.set(id, [{ status: 'in_progress', nativeStatus: 'COOKING' }]);
  await pass(2 * MINUTE);
  expect(await ask()).toEqual([]);
  await pass(2 * MINUTE);
  expect(await ask()).toEqual([id]);
  expect(outcomes()).toEqual(['said_more']);
  expect(await statusOf(id)).toBe('in_progress');
  await system.finish('relay');
  expect(system.live(id).at(-1)).toMatchObject({ memberState: 'preparing' });
  const [kept] = await system.query(
    'SELECT w.* FROM webhooks w JOIN status_events e ON e.webhook_id = w.id WHERE e.service_order_id = $1',
    [id],
  );
  expect(kept).toMatchObject({ polled: true, outcome: 'applied', headers: {}, location_id: locationId });
});

it('a status that a poll finds does not count as one that never came if webhooks of its location were dropped', async () => {
  const [first, second] = [await placeAlone(), await placeAlone()];
  for (const { id } of [first, second]) says.set(id, [{ status: 'in_progress' }]);
  await pass(2 * MINUTE);
  await webhook(first.locationId, { status: 'never' as 'received', serviceOrderId: first.id });
  // The process does not know yet that the clock was moved.
  const moved = `UPDATE webhooks SET received_at = clock.now() WHERE outcome = 'dropped' RETURNING id`;
  expect(await system.query(moved)).toHaveLength(1);
  await pass(2 * MINUTE);
  expect((await ask()).toSorted()).toEqual([first.id, second.id].toSorted());
  expect([(await system.placement(first.id))?.['missed'], (await system.placement(second.id))?.['missed']]).toEqual([
    0, 1,
  ]);
});

it('an order whose webhooks come is not polled', async () => {
  const { locationId, id } = await placeAlone();
  await webhook(locationId, { status: 'received', serviceOrderId: id });
  await pass(20 * MINUTE);
  await webhook(locationId, { status: 'in_progress', serviceOrderId: id });
  await pass(20 * MINUTE);
  expect(await ask()).toEqual([]);
});

it('an order that is past its requested time and has not ended is polled', async () => {
  const locationId = await addTill();
  const [{ now } = {}] = await system.query('SELECT clock.now()');
  const id = await placeAt(locationId, new Date((now as Date).getTime() + 30 * MINUTE * 1_000).toISOString());
  await webhook(locationId, { status: 'received', serviceOrderId: id });
  says.set(id, [{ status: 'completed' }]);
  expect(await askEachMinute(30, 5)).toBe(0);
  await pass(6 * MINUTE);
  await ask();
  expect(await statusOf(id)).toBe('completed');
  await pass(HOUR);
  asked = [];
  expect(await ask()).toEqual([]);
});

it("an order that is past its POS's estimate is polled, and a new estimate does not count as a missed webhook", async () => {
  const locationId = await addTill();
  const [{ now } = {}] = await system.query('SELECT clock.now()');
  const inMinutes = (minutes: number): string =>
    new Date((now as Date).getTime() + minutes * MINUTE * 1_000).toISOString();
  const id = await placeAt(locationId, inMinutes(5));
  const [first, second] = [inMinutes(20), inMinutes(40)];
  await webhook(locationId, { status: 'received', serviceOrderId: id, estimatedReadyAt: first });
  says.set(id, [{ status: 'received', estimatedReadyAt: second }]);
  expect(await askEachMinute(24, 4)).toBe(0);
  await pass(3 * MINUTE);
  expect([await ask(), outcomes()]).toEqual([[id], ['nothing_new']]);
  expect((await system.order(id))?.['estimate']).toEqual([expect.any(Date), new Date(second), null]);
  expect((await system.placement(id))?.['missed']).toBe(0);
  // Nor does the same once more.
  const count = 'SELECT count(*)::int AS n FROM status_events WHERE service_order_id = $1';
  const before = await system.query(count, [id]);
  await pass(25 * MINUTE);
  await ask();
  expect(await system.query(count, [id])).toEqual(before);
  // But another link alone.
  const trackingUrl = 'https://courier.example/1';
  says.set(id, [{ status: 'received', estimatedReadyAt: second, trackingUrl }]);
  for (let time = 0; time < 2; time++) {
    await pass(65 * MINUTE);
    await ask();
    expect((await system.order(id))?.['tracking']).toEqual([expect.any(String), trackingUrl]);
    expect(await system.query(count, [id])).toEqual([{ n: Number(before[0]?.['n']) + 1 }]);
  }
});

it('a silent location is polled if other locations of its vendor are not silent', async () => {
  const [silent, other] = [await addTill(), await addTill()];
  const id = await placeAt(silent);
  await webhook(silent, { status: 'received', serviceOrderId: id });
  await pass(31 * MINUTE);
  expect(await ask()).toEqual([]);
  // Written every ten seconds; the test does not wait for it.
  await system.query(
    `INSERT INTO location_last_seen (location_id, integration, last_seen_at) VALUES ($1, 'till', now())
     ON CONFLICT (location_id) DO UPDATE SET last_seen_at = now()`,
    [other],
  );
  expect(await ask()).toEqual([id]);
});

it('all orders of a location that misses webhooks are polled, one of them each minute', async () => {
  const locationId = await addTill();
  const ids = [await placeAt(locationId), await placeAt(locationId), await placeAt(locationId)];
  for (const id of ids.slice(1)) await webhook(locationId, { status: 'received', serviceOrderId: id });
  for (const id of ids) says.set(id, [{ status: 'ready' }]);
  await pass(3 * MINUTE + 1);
  expect(await askEachMinute(3)).toBe(3);
  expect(new Set(asked)).toEqual(new Set(ids));
  for (const id of ids) expect(await statusOf(id)).toBe('ready');
  await system.query(`UPDATE orders SET ended_at = now() WHERE service_order_id = ANY ($1)`, [ids]);
  const last = await placeAt(locationId);
  await webhook(locationId, { status: 'received', serviceOrderId: last });
  await pass(2 * MINUTE);
  const missedBy = (integration: string): Promise<unknown> =>
    system.query('UPDATE location_polls SET integration = $2 WHERE location_id = $1', [locationId, integration]);
  await missedBy('its former POS');
  expect(await askEachMinute(1)).toBe(0);
  await missedBy('till');
  expect(await askEachMinute(1)).toBe(1);
  await pass(2 * HOUR);
  await webhook(locationId, { status: 'in_progress', serviceOrderId: last });
  await pass(2 * MINUTE);
  expect(await askEachMinute(1)).toBe(0);
});

it('a location is polled at most once a minute, however many processes poll', async () => {
  const locationId = await addTill();
  for (let i = 0; i < 3; i++) says.set(await placeAt(locationId), [{ status: 'received' }]);
  await pass(4 * MINUTE);
  const counts = await Promise.all([asker(), asker(), asker()].map((each) => each.poll()));
  expect(counts.filter((count) => count > 0)).toEqual([1]);
  await until(() => outcomes().length === 1);
  expect(await ask()).toHaveLength(1);
  await pass(MINUTE / 2);
  expect(await ask()).toHaveLength(1);
  await pass(MINUTE / 2);
  expect(await ask()).toHaveLength(2);
});

it('polling leaves a location to another process that claims it first, and takes the next location', async () => {
  const [first, second] = [await addTill(), await addTill()];
  await placeAt(first);
  await pass(1);
  const id = await placeAt(second);
  await pass(4 * MINUTE);
  await withClient(system.pool, async (other) => {
    await other.query('BEGIN');
    await other.query(`INSERT INTO location_polls VALUES ($1, 'till', now() + interval '60 s')`, [first]);
    const claiming = claimQuietOrders(system.pool, ['till'], 1);
    await untilLocked(system);
    await other.query('COMMIT');
    expect(await claiming).toEqual([]);
  });
  expect(await claimQuietOrders(system.pool, ['till'], 1)).toMatchObject([{ locationId: second, serviceOrderId: id }]);
});

it('an order without news is polled less and less often, and nothing is stored', async () => {
  const { locationId, id } = await placeAlone();
  await webhook(locationId, { status: 'received', serviceOrderId: id });
  says.set(id, [{ status: 'received' }]);
  await pass(2 * HOUR);
  const before = await system.query('SELECT count(*) FROM status_events');
  expect(await askEachMinute(64, 2)).toBe(6);
  expect(await askEachMinute(180, 2)).toBe(3);
  expect(new Set(outcomes())).toEqual(new Set(['nothing_new']));
  expect(await system.query('SELECT count(*) FROM status_events')).toEqual(before);
  expect(await system.query('SELECT FROM webhooks WHERE polled AND location_id = $1', [locationId])).toEqual([]);
});

it('polling waits as long as the vendor asks', async () => {
  const id = await placeAt(await addTill());
  says.set(id, new TryAgain('too many', { sent: false, httpStatus: 429, retryAfterMs: 10 * MINUTE * 1_000 }));
  await pass(4 * MINUTE);
  expect(await askEachMinute(9)).toBe(1);
  expect(await askEachMinute(3)).toBe(1);
  expect(outcomes()).toEqual(['failed', 'failed']);
});

it('polling waits for an answer as long as an attempt at that POS may take', async () => {
  const id = await placeAt(await addTill());
  await pass(4 * MINUTE);
  const silent: Provider['readStatus'] = (_ref, _order, { signal }) => neverAnswers(signal);
  await ask(new Map([['till', { ...till, attemptWithinS: 0.3, readStatus: silent }]]));
  expect(observed).toMatchObject([{ outcome: 'failed', error: { message: 'no answer in 0.3 s' } }]);
  says.set(id, [{ status: 'received' }]);
  await pass(3 * MINUTE);
  await ask();
  expect(outcomes()).toEqual(['failed', 'said_more']);
});

it('a vendor that does not answer is not polled until its circuit has closed', async () => {
  const id = await placeAt(await addTill());
  says.set(id, [{ status: 'received' }]);
  await pass(4 * MINUTE);
  for (let nth = 0; nth < 10; nth++) {
    const locationId = `silent-${nth}`;
    breaker.callEnded({ locationId, integration: 'till' }, performance.now(), new TryAgain('cut off', { sent: true }));
  }
  const asking = asker();
  expect(await asking.poll()).toBe(0);
  breaker.callEnded({ locationId: 'silent-0', integration: 'till' }, performance.now());
  expect(await ask()).toEqual([id]);
});

it('failed polls do not open the circuit of their vendor', async () => {
  const ids: string[] = [];
  for (let i = 0; i < 10; i++) ids.push(await placeAt(await addTill()));
  for (const id of ids) says.set(id, new TryAgain('cut off', { sent: true }));
  await pass(4 * MINUTE);
  expect(await ask()).toHaveLength(10);
  expect(breaker.isOpen('till')).toBe(false);
});

it('an order is polled at once again if a webhook is newer than the last answer', async () => {
  const { locationId, id } = await placeAlone();
  says.set(id, []);
  await pass(4 * MINUTE);
  expect(await askEachMinute(70, 2)).toBe(6);
  await webhook(locationId, { status: 'received', serviceOrderId: id });
  says.set(id, [{ status: 'received' }]);
  await pass(6 * MINUTE);
  expect(await askEachMinute(4)).toBe(2);
});

it('an order is still polled if another order of its location has news each time', async () => {
  const locationId = await addTill();
  const [dead, live] = [await placeAt(locationId), await placeAt(locationId)];
  says.set(dead, [{ status: 'ready' }]);
  await pass(4 * MINUTE);
  says.set(live, [{ status: 'received' }]);
  // Both have told more, and so each is asked once again.
  await askEachMinute(3);
  for (const status of ['in_progress', 'ready', 'completed'] as const) {
    says.set(live, [{ status }]);
    await askEachMinute(1);
    expect(await statusOf(live)).toBe(status);
  }
});

it('an order that may have news is polled more often than an order without news', async () => {
  const locationId = await addTill();
  const [dead, live] = [await placeAt(locationId), await placeAt(locationId)];
  says.set(dead, [{ status: 'ready' }]);
  says.set(live, [{ status: 'received' }]);
  await pass(4 * MINUTE);
  await askEachMinute(8);
  says.set(live, [{ status: 'in_progress' }]);
  await askEachMinute(2);
  says.set(live, [{ status: 'ready' }]);
  expect(await askEachMinute(6)).toBe(6);
  expect(asked.filter((id) => id === live).length).toBeGreaterThan(3);
});

it('an answer about another order or with an unknown status is rejected', async () => {
  const ids = [await placeAt(await addTill()), await placeAt(await addTill())] as const;
  says.set(ids[0], [{ status: 'cancelled', serviceOrderId: ids[1] }]);
  says.set(ids[1], [{ status: 'burnt' as 'failed' }]);
  await pass(4 * MINUTE);
  await ask();
  expect(outcomes()).toEqual(['failed', 'failed']);
  for (const id of ids) expect(await statusOf(id)).toBeNull();
});

it('polling continues with the other orders if the POS does not know one order, or cannot be asked about that order', async () => {
  const locationId = await addTill();
  const ids = [await placeAt(locationId), await placeAt(locationId), await placeAt(locationId)] as const;
  says.set(ids[0], []);
  says.set(ids[1], undefined);
  says.set(ids[2], [{ status: 'received' }]);
  await pass(4 * MINUTE);
  expect(await askEachMinute(3)).toBe(3);
  expect(outcomes()).toEqual(['unknown', 'not_asked', 'said_more']);
});

it('polling skips an erased order and continues with the others', async () => {
  const locationId = await addTill();
  const erased = await placeAt(locationId);
  await withClient(system.pool, (client) => eraseOrders(client, [erased], true));
  const id = await placeAt(locationId);
  says.set(id, [{ status: 'received' }]);
  await pass(4 * MINUTE);
  expect(await ask()).toEqual([id]);
});

it('a POS id that only the answer to a poll names is stored', async () => {
  const { locationId, id } = await placeAlone();
  await system.query('UPDATE orders SET provider_order_id = NULL WHERE service_order_id = $1', [id]);
  await system.query('DELETE FROM provider_orders WHERE service_order_id = $1', [id]);
  await webhook(locationId, { status: 'received', serviceOrderId: id });
  says.set(id, [{ status: 'received', providerOrderId: 'table-7' }]);
  await pass(2 * HOUR);
  await ask();
  expect(outcomes()).toEqual(['nothing_new']);
  await webhook(locationId, { status: 'ready', providerOrderId: 'table-7' });
  expect(await statusOf(id)).toBe('ready');
});

it('a stored answer to a poll can be replayed', async () => {
  const id = await placeAt(await addTill());
  says.set(id, [{ status: 'ready' }]);
  await pass(4 * MINUTE);
  await ask();
  const [kept] = await system.query(
    'SELECT webhook_id FROM status_events WHERE service_order_id = $1 AND webhook_id IS NOT NULL',
    [id],
  );
  const deps = { pool: system.pool, decryptSettings: settingsDecrypter(rules), keys, publicUrl: '', dryRun: false };
  const replayed = await replayWebhook(deps, String(kept?.['webhook_id']));
  expect(replayed).toMatchObject({ outcome: 'duplicate', events: [{ status: 'ready', serviceOrderId: id }] });
  const again = await replayWebhook(deps, String(replayed && 'webhookId' in replayed && replayed.webhookId));
  expect(again).toMatchObject({ outcome: 'duplicate', events: [{ status: 'ready' }] });
});

it('polling does not wait for a slow vendor, and aborts open calls when it stops', async () => {
  const [slow, quick] = [await placeAt(await addTill()), await placeAt(await addTill())];
  await pass(4 * MINUTE);
  const readStatus: Provider['readStatus'] = async (_ref, { serviceOrderId }, { signal }) =>
    serviceOrderId === quick ? [{ serviceOrderId, status: 'received', nativeStatus: 'AT ONCE' }] : neverAnswers(signal);
  const asking = asker(new Map([['till', { ...till, attemptWithinS: 90, readStatus }]]));
  await asking.poll();
  await until(() => outcomes().length === 1);
  expect(await statusOf(quick)).toBe('received');
  await asking.stop();
  expect(outcomes()).toEqual(['said_more', 'failed']);
  expect(await statusOf(slow)).toBeNull();
});

it('polling runs as a job of the service', async () => {
  const id = await placeAt(await addTill());
  says.set(id, [{ status: 'received' }]);
  await pass(4 * MINUTE);
  await system.round('status polling');
  await until(async () => (await statusOf(id)) === 'received');
  await until(() => system.logged.some((line) => line.includes('more than its webhooks')));
});

it('the report about a poll has the request without its path and query', async () => {
  const serviceOrderId = await placeAt(await addTill());
  await pass(HOUR);
  observed = [];
  const origin = system.urls[0] ?? '';
  const readStatus: Provider['readStatus'] = async (_ref, _order, context) => {
    await context.fetch(new URL('/healthz?key=secret', origin), { method: 'post' });
    return [];
  };
  await ask(new Map([['till', { ...till, readStatus }]]));
  const told = observed.find((each) => each.what === 'poll' && each.serviceOrderId === serviceOrderId);
  expect(told).toMatchObject({ request: { method: 'POST', origin, status: 404 } });
  expect(JSON.stringify(told)).not.toMatch(/healthz|secret/);
});

it('the search for orders to poll reads healthy orders only once, and only in one process at a time', async () => {
  const [placed, ORDERS] = [await placeAt(await addTill()), 300];
  await system.query(
    `INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank)
     SELECT 'healthy-' || nth, 'K472', o.location_id, 'till', 'pickup', 20
     FROM orders o, generate_series(1, $2::int) AS nth WHERE o.service_order_id = $1`,
    [placed, ORDERS],
  );
  await pass(4 * MINUTE);
  await system.query('ANALYZE orders');
  const { reads } = await readPlans(system.pool, (pool) => claimQuietOrders(pool, ['nowhere', 'till'], 10));
  expect(reads).toBeGreaterThan(ORDERS);
  expect(reads).toBeLessThan(1.5 * ORDERS);

  await pass(10 * MINUTE);
  await inTransaction(system.pool, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK_POLL]);
    expect(await claimQuietOrders(system.pool, ['till'], 10)).toEqual([]);
  });
  expect(await claimQuietOrders(system.pool, ['till'], 10)).toMatchObject([{ serviceOrderId: placed }]);
});
