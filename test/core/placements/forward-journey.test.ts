import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { GraphQLError } from 'graphql';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { readConfig } from '../../../src/config/config.ts';
import { createLog } from '../../../src/observe/create-log.ts';
import { parseAllowedHosts } from '../../../src/core/egress/allowed-hosts.ts';
import { pauseLocation, resumeLocation } from '../../../src/core/kitchens/pause-location.ts';
import { putLocation } from '../../../src/core/locations/put-location.ts';
import { parseSettingsKeys } from '../../../src/core/locations/settings-key.ts';
import { NeedsOperator } from '../../../src/core/domain/errors.ts';
import type { PlacementCause } from '../../../src/core/domain/placement-cause.ts';
import type { LiveMessage } from '../../../src/core/domain/live-message.ts';
import type { OrderRef } from '../../../src/core/domain/order.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { standard } from '../../../src/providers/standard/index.ts';
import { registry } from '../../../src/providers/index.ts';
import { buildServer } from '../../../src/server/build-server.ts';
import { freePort } from '../../../world/network/free-port.ts';
import { orderRefetcher, refetchUnlessRefused } from '../../../src/core/placements/refetch-order.ts';
import { resolveNotThere } from '../../../src/core/placements/resolve-doubt.ts';
import { aMinuteLater, resolveAMinuteLater } from '../../support/resolve-a-minute-later.ts';
import { loadOrderModule } from '../../../src/platform/load-order-module.ts';
import { blind, findable } from '../../../world/pos/pos-without-deduplication.ts';
import { sampleOrder, type SampleOptions } from '../../../world/platform/sample-order.ts';
import { sendJson, serveHttp } from '../../../world/network/serve-http.ts';
import type { PlatformFault } from '../../../world/platform/start-ordering-platform.ts';
import { startPos, type Pos, type PosFault } from '../../../world/pos/start-pos.ts';
import { post, startSystem, statusWebhook, type System } from '../../../world/system/start-system.ts';
import { until } from '../../../world/processes/until.ts';
import { untilLocked } from '../../support/until-locked.ts';
import { whileLocked } from '../../support/while-locked.ts';

/** A POS that recognises a repeat for an hour. */
const forgetful: Provider = { ...(standard as Provider), integration: 'forgetful', deduplicatesForS: 3_600 };

/** The calls at a POS that answers only when the test says so. */
const hanging: ((ref: OrderRef) => void)[] = [];
const hangs: Provider = {
  ...(blind as Provider),
  integration: 'hanging',
  attemptWithinS: 120,
  createOrder: () => new Promise((answer) => hanging.push(answer)),
};

let system: System;
let pos: Pos;
let plain: Pos;

beforeAll(async () => {
  [system, pos, plain] = await Promise.all([
    startSystem({
      providers: [blind, findable, forgetful, hangs],
      stepped: ['placements', 'refreshes', 'cancellations', 'relay'],
    }),
    startPos(),
    startPos({ deduplicates: false }),
  ]);
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  await system.addLocation('blind', { ordersUrl: plain.ordersUrl }, 'blind');
  await system.addLocation('findable', { ordersUrl: plain.ordersUrl }, 'findable');
});
afterEach(async () => {
  vi.restoreAllMocks();
  pos.behave = undefined;
  plain.behave = undefined;
  system.platform.answer = undefined;
  // The next test's turns are for its own orders.
  await system.query(
    `UPDATE placements SET state = 'failed', finished_at = now(), absent_at = now() WHERE finished_at IS NULL`,
  );
});
afterAll(() => Promise.all([system?.stop(), pos?.stop(), plain?.stop()]));

type Placement = Record<string, unknown> & { id: string };

/** Does a turn of the workers. */
async function turn(id: string): Promise<Placement> {
  await system.round('placements');
  return { ...(await system.placement(id)), id };
}
/** A signal comes for a new order, and the workers do a turn. */
async function place(about?: SampleOptions): Promise<Placement> {
  return turn((await system.placeOrder(about)).serviceOrderId);
}
/** Does a turn after the wait for the next attempt. */
async function retried(id: string): Promise<Placement> {
  await system.query('UPDATE placements SET next_attempt_at = now() WHERE service_order_id = $1', [id]);
  return turn(id);
}
/** Does a turn after so many seconds. */
async function afterSeconds(id: string, seconds: number): Promise<Placement> {
  await age(id, seconds);
  return retried(id);
}
const age = (id: string, seconds: number): Promise<unknown> =>
  system.query(
    `UPDATE placements
     SET signalled_at = signalled_at - make_interval(secs => $2), deadline_at = deadline_at - make_interval(secs => $2),
         request_ended_at = request_ended_at - make_interval(secs => $2),
         missing_since = missing_since - make_interval(secs => $2)
     WHERE service_order_id = $1`,
    [id, seconds],
  );
const realNow = performance.now.bind(performance);
/** Moves the clock of this process. */
const moveClock = (milliseconds: number): unknown =>
  vi.spyOn(performance, 'now').mockImplementation(() => realNow() + milliseconds);
const tickets = (id: string): number =>
  [...pos.tickets, ...plain.tickets].filter((ticket) => ticket.serviceOrderId === id).length;
const attempts = (id: string): Promise<Record<string, unknown>[]> =>
  system.query('SELECT * FROM placement_attempts WHERE service_order_id = $1 ORDER BY attempt', [id]);
/** What the member was told. */
async function told(id: string): Promise<LiveMessage[]> {
  await system.finish('relay');
  return system.live(id);
}
const memberStates = async (id: string): Promise<string[]> => (await told(id)).map(({ memberState }) => memberState);
const refusal = (code: string) => () => ({ errors: [{ message: 'no', extensions: { code } }] });

describe('a signal', () => {
  it('makes no second ticket for an order that was sent', async () => {
    const { id } = await place();
    const signals = await Promise.all(Array.from({ length: 5 }, () => system.signal(id)));
    expect(new Set(signals)).toEqual(new Set([204]));
    await system.round('refreshes');
    expect(await retried(id)).toMatchObject({ state: 'sent' });
    expect(tickets(id)).toBe(1);
    expect(await attempts(id)).toHaveLength(1);
  });

  it('gives only an id: the order is read from the platform', async () => {
    const order = sampleOrder();
    system.platform.orders.set(order.serviceOrderId, order);
    const token = await system.pubsub.signPushToken({
      aud: system.env['PUSH_AUDIENCE'],
      email: system.env['PUSH_SERVICE_ACCOUNT'],
      email_verified: true,
    });
    const data = { orderId: order.serviceOrderId, order: { ...order, locationId: 'blind' } };
    const answer = await post(
      `${system.urls[0]}/pubsub/push`,
      { message: { data: Buffer.from(JSON.stringify(data)).toString('base64'), messageId: '1' }, subscription: 's' },
      { authorization: `Bearer ${token}` },
    );
    expect(answer.status).toBe(204);
    expect(await turn(order.serviceOrderId)).toMatchObject({ state: 'sent', location_id: 'club-1' });
  });

  it('is answered 503 if it cannot be recorded, so that Pub/Sub sends the signal again', async () => {
    const { serviceOrderId } = sampleOrder();
    await system.query('ALTER TABLE placements RENAME TO placements_away');
    const status = await system.signal(serviceOrderId);
    await system.query('ALTER TABLE placements_away RENAME TO placements');
    expect(status).toBe(503);
    expect(await system.placement(serviceOrderId)).toBeUndefined();
  });
});

describe('retries', () => {
  it.each([
    [429, 'waiting', 'pos_busy'],
    [500, 'in_doubt', 'pos_failing'],
    [503, 'in_doubt', 'pos_failing'],
  ])('an order that the POS answered with %i is sent again, and has one ticket', async (status, state, code) => {
    pos.behave = ({ attempt }) => (attempt === 1 ? { status, headers: { 'retry-after': '1' } } : undefined);
    // After a 429, no request goes to this URL for a second.
    await system.addLocation(`at-${status}`, { ordersUrl: `${pos.ordersUrl}?${status}` });
    const placement = await place({ locationId: `at-${status}` });
    const { id } = placement;
    expect(placement).toMatchObject({ state, failures: 1, cause: { code, httpStatus: status } });
    const [first] = await attempts(id);
    expect(first).toMatchObject({ outcome: 'TryAgain', http_status: status, call: 'createOrder' });
    // Retry-After is honoured.
    const wait = Number(placement['next_attempt_at']) - Number(first?.['ended_at']);
    expect(wait).toBeGreaterThanOrEqual(900);
    moveClock(1_000);
    expect(await retried(id)).toMatchObject({ state: 'sent' });
    expect(tickets(id)).toBe(1);
    expect(await attempts(id)).toMatchObject([{ outcome: 'TryAgain' }, { outcome: 'placed' }]);
  });

  it('a call that our own rate limiter prevented is recorded as not sent', async () => {
    pos.behave = () => ({ status: 429, headers: { 'retry-after': '60' } });
    await system.addLocation('limited', { ordersUrl: `${pos.ordersUrl}?limited` });
    const [{ id: first }, { id: second }] = [
      await place({ locationId: 'limited' }),
      await place({ locationId: 'limited' }),
    ];
    expect(await attempts(first)).toMatchObject([{ outcome: 'TryAgain', http_status: 429 }]);
    expect(await attempts(second)).toMatchObject([{ outcome: 'not_sent', http_status: null }]);
    expect(await system.placement(second)).toMatchObject({ state: 'waiting', cause: { code: 'pos_busy' } });
  });

  it('an order is not in doubt if there was no connection to the POS', async () => {
    await system.addLocation('closed', { ordersUrl: `http://127.0.0.1:${await freePort()}/orders` });
    const placement = await place({ locationId: 'closed' });
    expect(placement).toMatchObject({
      state: 'waiting',
      problem: expect.stringContaining('ECONNREFUSED'),
      cause: { code: 'pos_unreachable' },
    });
    await system.addLocation('closed', { ordersUrl: pos.ordersUrl });
    expect(await retried(placement.id)).toMatchObject({ state: 'sent' });
  });

  it.each([
    ['down', 'down' as const],
    ['missing the order', 'null' as const],
    ['answering NOT_FOUND', { errors: [{ message: 'none', extensions: { code: 'NOT_FOUND' } }] }],
    ['out of order', { errors: [{ message: 'ada@example.com broke it', extensions: { code: 'INTERNAL' } }] }],
  ])('an order is fetched again after the platform was %s', async (_what, fault) => {
    let calls = 0;
    system.platform.answer = () => (calls++ === 0 ? fault : undefined);
    const { id, state } = await place();
    expect(state).toBe('waiting');
    expect(await retried(id)).toMatchObject({ state: 'sent', problem: null, cause: null });
    expect(calls).toBe(2);
    expect(system.logged.join('')).not.toContain('ada@example.com');
  });
});

describe('a problem for an operator', () => {
  it('a location without settings holds its orders, and storing its settings sends them', async () => {
    const locationId = `new-${randomUUID()}`;
    const placement = await place({ locationId });
    const { id } = placement;
    expect(placement).toMatchObject({
      state: 'held',
      problem: 'the location is not configured',
      cause: { code: 'no_location' },
    });
    expect(system.logged.some((line) => line.includes('order held') && line.includes(id))).toBe(true);
    await system.addLocation(locationId, { ordersUrl: pos.ordersUrl });
    expect(await turn(id)).toMatchObject({ state: 'sent' });
  });

  it.each([401, 403])(
    'an order that the POS answered with %i is held until its location is stored again',
    async (status) => {
      pos.behave = ({ attempt }) => (attempt === 1 ? { status } : undefined);
      const placement = await place();
      const cause = { code: 'pos_refused_us', httpStatus: status };
      expect(placement).toMatchObject({ state: 'held', failures: 0, cause });
      await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
      expect(await turn(placement.id)).toMatchObject({ state: 'sent' });
    },
  );

  it("settings that cannot be decrypted hold an order, even after a pause that was longer than the order's deadline", async () => {
    await system.addLocation('odd', { ordersUrl: pos.ordersUrl });
    const [row] = await system.query(`SELECT settings FROM locations WHERE location_id = 'odd'`);
    await system.query(`UPDATE locations SET settings = 'no JWE at all', paused_at = now() WHERE location_id = 'odd'`);
    const { id, state } = await place({ locationId: 'odd' });
    expect(state).toBe('held');
    expect(await afterSeconds(id, 1_801)).toMatchObject({
      state: 'held',
      problem: 'the location is paused',
      cause: { code: 'location_paused' },
    });
    await system.query(`UPDATE locations SET paused_at = now() - interval '1 h' WHERE location_id = 'odd'`);
    await resumeLocation(system.pool, 'odd');
    expect(await turn(id)).toMatchObject({
      state: 'held',
      problem: expect.stringContaining('cannot be decrypted'),
      cause: { code: 'settings_sealed' },
    });
    await system.query(`UPDATE locations SET settings = $1 WHERE location_id = 'odd'`, [row?.['settings']]);
    expect(await retried(id)).toMatchObject({ state: 'sent' });
  });

  it('an answer without any field of the default query causes NeedsOperator that names ORDER_MODULE', async () => {
    const server = await serveHttp((_request, response) => sendJson(response, 200, { data: { bestellung: {} } }));
    const module = await loadOrderModule({});
    const refetch = orderRefetcher({
      url: server.url,
      token: undefined,
      module,
      countryOf: async () => null,
      warn: () => {},
    });
    await expect(refetch('x')).rejects.toMatchObject({
      name: 'NeedsOperator',
      cause: { code: 'query_without_order' },
      message: expect.stringContaining('ORDER_MODULE'),
    });
    await server.stop();
  });

  it.each<[string, () => PlatformFault, string]>([
    ['says FORBIDDEN', refusal('FORBIDDEN'), 'platform_refuses_us'],
    ['says UNAUTHENTICATED', refusal('UNAUTHENTICATED'), 'platform_refuses_us'],
    ['sends an endless answer', () => 'endless', 'platform_answer_too_large'],
    ['says that the query does not fit', refusal('GRAPHQL_VALIDATION_FAILED'), 'platform_refuses_query'],
  ])('an order is held if the platform %s', async (_what, answer, code) => {
    system.platform.answer = answer;
    const placement = await place();
    expect(placement).toMatchObject({ state: 'held', cause: { code } });
    system.platform.answer = undefined;
    expect(await retried(placement.id)).toMatchObject({ state: 'sent' });
  });

  it("if the platform redirects, the order is held, and the platform's token is not sent to the new address", async () => {
    const seen: IncomingHttpHeaders[] = [];
    const elsewhere = await serveHttp((request, response) => {
      seen.push(request.headers);
      sendJson(response, 200, {});
    });
    system.platform.answer = () => ({ redirect: elsewhere.url });
    const placement = await place();
    await elsewhere.stop();
    expect(placement).toMatchObject({
      state: 'held',
      cause: { code: 'platform_redirects', httpStatus: 307 },
      problem: expect.stringContaining('ORDER_API_URL') as string,
    });
    expect(seen).toEqual([]);
    system.platform.answer = undefined;
    expect(await retried(placement.id)).toMatchObject({ state: 'sent' });
  });

  it('one field that the token may not read holds only its order, and the problem names the field', async () => {
    const field = 'order.items.*.modifiers.*.name';
    const order = sampleOrder();
    const name = (): never => {
      throw new GraphQLError('not for Ada', { extensions: { code: 'FORBIDDEN' } });
    };
    // The field is not nullable, so there is no order in the answer.
    const item = { ...order.items[0], modifiers: [{ serviceModifierId: 'm', quantity: 1, name }] };
    system.platform.orders.set(order.serviceOrderId, { ...order, items: [item] });
    await system.signal(order.serviceOrderId);
    expect(await turn(order.serviceOrderId)).toMatchObject({
      state: 'held',
      cause: { code: 'platform_refuses_field', fields: [field], httpStatus: 200 },
      problem: `the ordering platform denies us ${field}: remove it from the query, or let the token read it`,
    });
    expect(await place()).toMatchObject({ state: 'sent' });
  });

  it.each<[PlacementCause, number]>([
    [{ code: 'platform_redirects' }, 3],
    [{ code: 'platform_refuses_query', fields: [] }, 3],
    [{ code: 'platform_refuses_field', fields: ['order.notes'] }, 9],
    [{ code: 'platform_refuses_order' }, 9],
  ])('of nine orders with the cause %j, the platform is asked for %i', async (cause, most) => {
    let asked = 0;
    const refetch = refetchUnlessRefused(async () => {
      asked += 1;
      throw new NeedsOperator('no', { cause });
    });
    for (let nth = 0; nth < 9; nth += 1) await expect(refetch(`order-${nth}`)).rejects.toThrow('no');
    expect(asked).toBe(most);
  });

  it('orders that the platform refuses do not keep healthy orders from being fetched', async () => {
    const asked: string[] = [];
    const refetch = refetchUnlessRefused(async (orderId) => {
      asked.push(orderId);
      if (orderId.startsWith('healthy')) return undefined;
      throw new NeedsOperator('refused', { cause: { code: 'platform_refuses_us' } });
    });
    const refused = ['a', 'b', 'c', 'd'];
    const tryRefused = async (): Promise<void> => {
      for (const each of refused) await expect(refetch(each)).rejects.toThrow('refused');
    };
    await tryRefused();
    moveClock(5_000);
    asked.length = 0;
    await tryRefused();
    // `a` took the turn of the refused orders, and `d` that of the others: it was held without a request.
    expect(asked).toEqual(['a', 'd']);
    moveClock(10_000);
    await tryRefused();
    await refetch('healthy-1');
    await refetch('healthy-2');
    expect(asked.slice(2)).toEqual(['a', 'healthy-1', 'healthy-2']);
  });

  it('an order at a location with a forbidden host is held, and the problem names only the host', async () => {
    const location = { locationId: 'inside', integration: 'standard' };
    const settings = { ordersUrl: 'http://127.0.0.2:9/hidden?key=hidden', unsigned: true };
    // Put by a version that knew no such rule, or while ALLOW_PRIVATE_HOSTS named it.
    const keys = parseSettingsKeys(system.env['SETTINGS_KEY'] ?? '');
    const rules = { registry, keys, publicUrl: undefined, allowedHosts: parseAllowedHosts('127.0.0.2') };
    await putLocation(system.pool, rules, { ...location, settings });
    const placement = await place({ locationId: 'inside' });
    expect(placement).toMatchObject({
      state: 'held',
      cause: { code: 'pos_host_refused', reason: 'loopback' },
      problem: expect.stringMatching(/^127\.0\.0\.2: (?!.*hidden).*ALLOW_PRIVATE_HOSTS/) as string,
    });
    await system.addLocation('inside', { ordersUrl: pos.ordersUrl });
    expect(await turn(placement.id)).toMatchObject({ state: 'sent' });
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['a million burgers', { items: [{ ...sampleOrder().items[0], quantity: 1_000_000 }] }, 'items.0.quantity'],
    ['no items', { items: [] }, 'items'],
    ['a delivery without a destination', { fulfillment: { type: 'delivery' } }, 'fulfillment.destination'],
    ['a made-up currency', { money: { ...sampleOrder().money, currency: '47 Ada' } }, 'money.currency'],
    ['another id than the requested one', { serviceOrderId: 'another' }, 'serviceOrderId'],
  ])(
    'an order with %s is held without its values in the problem, and is sent once the order can be read',
    async (_what, wrong, path) => {
      const order = sampleOrder();
      const { serviceOrderId: id } = order;
      system.platform.orders.set(id, { ...order, ...wrong });
      await system.signal(id);
      const { state, problem, cause } = await turn(id);
      expect(state).toBe('held');
      expect(problem).toContain(`the order cannot be read: ${path} `);
      expect(cause).toMatchObject({ code: 'order_unreadable', issues: [{ path }] });
      expect(JSON.stringify([problem, cause])).not.toMatch(/47|Ada|another/);
      expect(await system.order(id)).toBeUndefined();
      system.platform.orders.set(id, order);
      expect(await retried(id)).toMatchObject({ state: 'sent' });
    },
  );

  it('an order that cannot be read is fetched again at a new signal, and when a process starts', async () => {
    const orders = [sampleOrder(), sampleOrder()] as const;
    const [{ serviceOrderId: first }, { serviceOrderId: second }] = orders;
    for (const order of orders) {
      system.platform.orders.set(order.serviceOrderId, { ...order, items: [] });
      await system.signal(order.serviceOrderId);
    }
    expect([await turn(first), await turn(second)]).toMatchObject([{ state: 'held' }, { state: 'held' }]);
    for (const order of orders) system.platform.orders.set(order.serviceOrderId, order);
    expect(await system.signal(first)).toBe(204);
    expect(await turn(first)).toMatchObject({ state: 'sent' });
    expect(await turn(second)).toMatchObject({ state: 'held' });
    const log = createLog('error', { write: () => {} });
    const another = await buildServer(readConfig(system.env), { registry, log, env: {}, runs: () => false });
    await another.start();
    expect(await turn(second)).toMatchObject({ state: 'sent' });
    await another.drain();
  });

  it('many orders that cannot be read do not count as refusals by the platform', async () => {
    for (let nth = 0; nth < 5; nth += 1) expect(await place({ items: [] })).toMatchObject({ state: 'held' });
    expect(await place()).toMatchObject({ state: 'sent' });
  });

  it('a platform that refuses us is asked for at most two orders in five seconds, until the platform answers for one of them', async () => {
    system.platform.answer = refusal('UNAUTHENTICATED');
    for (let nth = 0; nth < 3; nth += 1) await place();
    const asked = system.platform.requests.length;
    const allTryAgain = async (): Promise<void> => {
      await system.query(`UPDATE placements SET next_attempt_at = now() WHERE finished_at IS NULL`);
      await system.round('placements');
    };
    for (let nth = 0; nth < 6; nth += 1) await system.placeOrder();
    await allTryAgain();
    const open = 'SELECT state, cause FROM placements WHERE finished_at IS NULL';
    const refused = { state: 'held', cause: expect.objectContaining({ code: 'platform_refuses_us' }) };
    expect(await system.query(open)).toEqual(Array.from({ length: 9 }, () => refused));
    // One order asks where the machine took five seconds for this.
    expect(system.platform.requests.length - asked).toBeLessThanOrEqual(1);
    const askedBefore = system.platform.requests.length;
    moveClock(5_000);
    await allTryAgain();
    // One of the orders that were refused asks, and one of those that were held without a request.
    expect(system.platform.requests.length - askedBefore).toBeOneOf([1, 2]);
    system.platform.answer = undefined;
    moveClock(10_000);
    await allTryAgain();
    await allTryAgain();
    // A location has four workers.
    await system.finish('placements');
    expect(await system.query(open)).toEqual([]);
  });

  it('a paused location holds its orders until the location is resumed, and the pause does not count for the deadline', async () => {
    await system.addLocation('paused', { ordersUrl: pos.ordersUrl });
    await pauseLocation(system.pool, 'paused');
    const { id, state } = await place({ locationId: 'paused' });
    expect(state).toBe('held');
    await system.query(`UPDATE locations SET paused_at = now() - interval '3000 s' WHERE location_id = 'paused'`);
    expect(await afterSeconds(id, 3_000)).toMatchObject({ state: 'held' });
    await resumeLocation(system.pool, 'paused');
    expect(await turn(id)).toMatchObject({ state: 'sent' });
    expect(await memberStates(id)).toEqual(['placed', 'sent']);
  });

  it('an order is tried again at once, not after 30 s, if its settings are fixed while the POS refuses it', async () => {
    let calls = 0;
    const server = await serveHttp(async (request, response) => {
      await request.toArray();
      calls += 1;
      if (calls === 1) await system.addLocation('mended', { ordersUrl: `${server.url}/orders` });
      sendJson(response, calls === 1 ? 401 : 200, { providerOrderId: 'p' });
    });
    await system.addLocation('mended', { ordersUrl: `${server.url}/orders` });
    const { id, state } = await place({ locationId: 'mended' });
    expect(state).toBe('held');
    expect(await turn(id)).toMatchObject({ state: 'sent' });
    expect(calls).toBe(2);
    await server.stop();
  });
});

describe('a final failure', () => {
  it("follows at once when the POS rejects the order, with the POS's reason for the member", async () => {
    pos.behave = () => ({ status: 422, body: { reason: 'out of buns' } });
    const placement = await place();
    const { id } = placement;
    expect(placement).toMatchObject({ state: 'failed', cause: { code: 'pos_rejected_order', httpStatus: 422 } });
    expect(await system.order(id)).toMatchObject({ status: 'failed', reason: 'out of buns', failed_by_us: true });
    expect(await told(id)).toMatchObject([
      { memberState: 'placed', sequence: 1 },
      { memberState: 'failed', sequence: 2, reason: 'out of buns', status: 'failed' },
    ]);
    expect(await attempts(id)).toHaveLength(1);
  });

  it('follows a refusal even if its reason has characters that Postgres cannot store', async () => {
    pos.behave = () => ({ status: 422, body: { reason: 'out of \0buns' } });
    const { id, state } = await place();
    expect(state).toBe('failed');
    expect(await system.order(id)).toMatchObject({ status: 'failed', reason: 'out of buns' });
    expect(await attempts(id)).toMatchObject([{ outcome: 'GiveUp' }]);
  });

  it('follows a refusal without a body only if the POS has taken an order within the last day', async () => {
    pos.behave = () => ({ status: 422 });
    await system.addLocation('club-bare', { ordersUrl: pos.ordersUrl });
    const placing = (): Promise<Placement> => place({ locationId: 'club-bare' });
    expect(await placing()).toMatchObject({ state: 'held' });
    pos.behave = undefined;
    const { id } = await placing();
    expect(await system.placement(id)).toMatchObject({ state: 'sent' });
    pos.behave = () => ({ status: 422 });
    expect(await placing()).toMatchObject({ state: 'failed' });
    await system.query(`UPDATE placements SET signalled_at = signalled_at - interval '25 h' WHERE state = 'sent'`);
    expect(await placing()).toMatchObject({ state: 'held' });
  });
  it('follows without another attempt for an order that ended while it waited', async () => {
    pos.behave = () => ({ status: 429 });
    const { id } = await place();
    await system.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1', [id]);
    pos.behave = undefined;
    expect(await retried(id)).toMatchObject({
      state: 'failed',
      problem: 'the order has ended',
      cause: { code: 'order_ended' },
    });
    expect(await attempts(id)).toHaveLength(1);
    expect(tickets(id)).toBe(0);
  });

  it("follows the platform's answer BAD_USER_INPUT", async () => {
    system.platform.answer = refusal('BAD_USER_INPUT');
    expect(await place()).toMatchObject({ state: 'failed', cause: { code: 'order_id_invalid' } });
  });

  it("comes 120 s after the platform's first answer that the order is missing, not 120 s after the signal", async () => {
    system.platform.answer = () => 'down';
    const { id } = await place();
    system.platform.answer = () => 'null';
    expect(await afterSeconds(id, 1_000)).toMatchObject({ state: 'waiting', cause: { code: 'order_missing_yet' } });
    system.platform.answer = undefined;
    expect(await retried(id)).toMatchObject({ state: 'sent', missing_since: null });
  });

  it('follows when the platform has had no such order for 120 s', async () => {
    const id = `ghost-${randomUUID()}`;
    await system.signal(id);
    expect(await turn(id)).toMatchObject({ state: 'waiting', cause: { code: 'order_missing_yet' } });
    expect(await afterSeconds(id, 121)).toMatchObject({
      state: 'failed',
      problem: 'the platform has no such order',
      cause: { code: 'order_missing' },
    });
  });

  it('ends with a new signal if the order was never read, and the sequence continues', async () => {
    system.platform.answer = refusal('BAD_USER_INPUT');
    const { id } = await place();
    expect(await told(id)).toEqual([
      {
        serviceOrderId: id,
        sequence: 1,
        status: 'failed',
        memberState: 'failed',
        reason: 'the order could not be read',
        reasonCode: 'technical',
        appliedAt: expect.any(String),
      },
    ]);
    const published = system.pubsub.published('order-status').find((each) => each.orderingKey === id);
    expect(published?.attributes).toMatchObject({
      type: 'orderStatusChanged',
      serviceOrderId: id,
      status: 'failed',
      memberState: 'failed',
      sequence: '1',
    });
    expect(published?.attributes).not.toHaveProperty('locationId');
    await age(id, 3_000);
    system.platform.answer = () => 'down';
    expect(await system.signal(id)).toBe(204);
    const again = await turn(id);
    expect(again).toMatchObject({ state: 'waiting', failures: 1 });
    expect(Number(again['deadline_at']) - Date.now()).toBeGreaterThan(1_700_000);
    system.platform.answer = undefined;
    expect(await retried(id)).toMatchObject({ state: 'sent', problem: null, cause: null });
    expect((await told(id)).map(({ memberState, sequence }) => [memberState, sequence])).toEqual([
      ['failed', 1],
      ['placed', 2],
      ['sent', 3],
    ]);
    expect(await system.order(id)).toMatchObject({ sequence: 3 });
  });

  it('does not end with a new signal if the order was fetched', async () => {
    pos.behave = () => ({ status: 422 });
    const failed = await place();
    pos.behave = undefined;
    expect(await system.signal(failed.id)).toBe(204);
    await system.round('refreshes');
    expect(await turn(failed.id)).toEqual(failed);
    expect(tickets(failed.id)).toBe(0);
  });

  it('makes a later status from the POS a conflict', async () => {
    pos.behave = () => ({ status: 422 });
    const { id } = await place();
    const url = await system.webhookUrl('club-1');
    const progress = statusWebhook({ serviceOrderId: id, status: 'IN_PROGRESS' });
    expect((await post(url, progress)).body['outcome']).toBe('stale');
    const conflicts = 'SELECT conflict FROM status_events WHERE service_order_id = $1 ORDER BY event_id';
    expect(await system.query(conflicts, [id])).toEqual([{ conflict: false }, { conflict: true }]);
  });
});

describe('failures of orders', () => {
  const NOT_ASKED = {
    memberState: 'failed',
    reason: 'the restaurant could not take the order',
    reasonCode: 'technical',
  };

  it('an order whose POS cannot be reached until the deadline fails, and the member is notified', async () => {
    pos.behave = () => ({ status: 429 });
    const { id } = await place();
    expect(await afterSeconds(id, 1_801)).toMatchObject({ state: 'failed', cause: { code: 'deadline_passed' } });
    expect(await system.order(id)).toMatchObject({ status: 'failed', reason: 'could not reach the POS' });
    expect(await memberStates(id)).toEqual(['placed', 'failed']);
  });

  it('an order whose platform cannot be reached until the deadline fails, and the member is notified', async () => {
    system.platform.answer = () => 'down';
    const { id } = await place();
    expect(await afterSeconds(id, 1_801)).toMatchObject({ state: 'failed' });
    expect(await system.order(id)).toBeUndefined();
    expect(await told(id)).toMatchObject([NOT_ASKED]);
  });

  it('an order that cannot be read until the deadline fails with its last problem, without blaming the POS', async () => {
    const { id, state, problem } = await place({ items: [] });
    expect(state).toBe('held');
    expect(await afterSeconds(id, 1_801)).toMatchObject({
      state: 'failed',
      cause: { code: 'deadline_passed' },
      problem: `the deadline has passed; last problem: ${String(problem)}`,
    });
    expect(await told(id)).toMatchObject([NOT_ASKED]);
  });

  it('an order that is held until the deadline fails without blaming the POS', async () => {
    pos.behave = () => ({ status: 401 });
    const { id, state } = await place();
    expect(state).toBe('held');
    expect(await afterSeconds(id, 1_801)).toMatchObject({ state: 'failed' });
    expect((await told(id)).at(-1)).toMatchObject(NOT_ASKED);
  });

  it('an order that fails repeatedly gets rising sequence numbers, also above a stored floor', async () => {
    system.platform.answer = refusal('BAD_USER_INPUT');
    const { id } = await place();
    await system.signal(id);
    await turn(id);
    await system.query('INSERT INTO sequence_floor (floor) VALUES (1000)');
    await system.signal(id);
    await turn(id);
    await system.query('DELETE FROM sequence_floor');
    expect((await told(id)).map(({ sequence }) => sequence)).toEqual([1, 2, 1_001]);
  });

  it('the deadline counts from requestedAt if requestedAt is later than the signal', async () => {
    pos.behave = ({ attempt }) => (attempt === 1 ? { status: 503 } : undefined);
    const requestedAt = new Date(Date.now() + 7_200_000).toISOString();
    const { id } = await place({ fulfillment: { type: 'pickup', requestedAt } });
    expect(await afterSeconds(id, 1_801)).toMatchObject({ state: 'sent' });
  });
});

describe('an order in doubt', () => {
  const FOR_A_PERSON = { state: 'in_doubt', next_attempt_at: Infinity };

  it('is sent again to a POS that deduplicates, and has one ticket', async () => {
    pos.behave = ({ attempt }) => (attempt === 1 ? 'drop-answer' : undefined);
    const { id } = await place();
    expect(await retried(id)).toMatchObject({ state: 'sent' });
    expect(tickets(id)).toBe(1);
    expect(await attempts(id)).toMatchObject([{ outcome: 'TryAgain' }, { outcome: 'placed' }]);
  });

  it('is cancelled at the POS after the deadline, instead of being repeated', async () => {
    pos.behave = () => 'drop-answer';
    const { id, state } = await place();
    expect(state).toBe('in_doubt');
    pos.behave = undefined;
    expect(await afterSeconds(id, 1_801)).toMatchObject({
      ...FOR_A_PERSON,
      problem: expect.stringContaining('deadline has passed'),
      cause: { code: 'deadline_passed_in_doubt' },
    });
    await turn(id);
    expect(await attempts(id)).toHaveLength(1);
    expect(await system.query('SELECT state FROM cancellations WHERE service_order_id = $1', [id])).toHaveLength(1);
  });

  it('waits a full minute again after a failed repeat, which may still make a ticket', async () => {
    pos.behave = ({ attempt }) => (attempt === 1 ? 'drop-answer' : { status: 503 });
    const { id } = await place();
    const placement = await retried(id);
    const [, repeat] = await attempts(id);
    expect(Number(placement['request_ended_at'])).toBeGreaterThan(Number(repeat?.['started_at']));
  });

  const taken: PosFault[] = ['drop-answer', { status: 503, takes: true }];
  it.each(taken)('is left to a person once the POS no longer recognises a repeat (first answer: %j)', async (first) => {
    await system.addLocation('forgetful', { ordersUrl: pos.ordersUrl, unsigned: true }, 'forgetful');
    pos.behave = ({ attempt }) => (attempt === 1 ? first : { status: 503 });
    const { id } = await place({ locationId: 'forgetful' });
    // Within the hour it is sent again.
    await retried(id);
    expect(await attempts(id)).toHaveLength(2);
    await system.query(
      `UPDATE placement_attempts SET started_at = started_at - interval '3590 s' WHERE service_order_id = $1`,
      [id],
    );
    pos.behave = undefined;
    expect(await retried(id)).toMatchObject({ ...FOR_A_PERSON, cause: { code: 'repeat_unrecognised' } });
    expect(await attempts(id)).toHaveLength(2);
  });

  it('does not fail when the POS refuses the repeat, because the first request may have made a ticket', async () => {
    pos.behave = ({ attempt }) => (attempt === 1 ? 'drop-answer' : { status: 422, body: { reason: 'closed now' } });
    const { id } = await place();
    expect(await retried(id)).toMatchObject({
      ...FOR_A_PERSON,
      problem: expect.stringContaining('refuses the repeat'),
      cause: { code: 'repeat_refused', httpStatus: 422 },
    });
    expect(await memberStates(id)).toEqual(['placed']);
    expect(tickets(id)).toBe(1);
  });

  it.each([
    ['another POS', 'findable', { code: 'location_left_pos', integration: 'standard' }],
    ['another till of the same vendor', 'standard', { code: 'pos_account_changed' }],
  ])(
    'is left to a person when its location moves to %s, which does not know the first request',
    async (_where, integration, cause) => {
      await system.addLocation('moving', { ordersUrl: pos.ordersUrl });
      pos.behave = ({ attempt }) => (attempt === 1 ? 'drop-answer' : { status: 503, headers: { 'retry-after': '60' } });
      const { id } = await place({ locationId: 'moving' });
      await retried(id);
      await system.addLocation('moving', { ordersUrl: plain.ordersUrl }, integration);
      expect(await turn(id)).toMatchObject({ ...FOR_A_PERSON, cause });
      expect(await attempts(id)).toHaveLength(2);
      expect(tickets(id)).toBe(1);
      expect(plain.tickets.some((ticket) => ticket.serviceOrderId === id)).toBe(false);
    },
  );

  it("is not the result if the database fails while the POS's answer is stored", async () => {
    const server = await serveHttp(async (request, response) => {
      await request.toArray();
      sendJson(response, 200, { providerOrderId: 'known-all-along' });
    });
    await system.addLocation('blip', { ordersUrl: `${server.url}/orders` }, 'blind');
    // A sequence counts the failures, because a roll-back does not reset it.
    await system.query(
      `CREATE SEQUENCE failures;
       CREATE FUNCTION fail_twice() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
         IF nextval('failures') <= 2 THEN RAISE 'away' USING ERRCODE = '57P01'; END IF;
         RETURN new;
       END $$;
       CREATE TRIGGER fails BEFORE INSERT ON provider_orders FOR EACH ROW EXECUTE FUNCTION fail_twice()`,
    );
    const placement = await place({ locationId: 'blip' });
    await system.query('DROP TRIGGER fails ON provider_orders');
    expect(placement).toMatchObject({ state: 'sent', provider_order_id: 'known-all-along' });
    expect(await attempts(placement.id)).toMatchObject([
      { outcome: 'placed', http_status: null, milliseconds: expect.any(Number) },
    ]);
    expect(await system.query('SELECT last_value::int FROM failures')).toEqual([{ last_value: 3 }]);
    await server.stop();
  });

  it('is not the result if the machine is suspended before the call: the next worker makes the call', async () => {
    await system.addLocation('suspended', { ordersUrl: pos.ordersUrl });
    await pauseLocation(system.pool, 'suspended');
    const { id } = await place({ locationId: 'suspended' });
    const before = pos.requests;
    await resumeLocation(system.pool, 'suspended');
    const { suspended } = await whileLocked(system.pool, id, async () => {
      const round = system.round('placements');
      await untilLocked(system);
      // Only its own clock tells: the monotonic one stands still.
      const { now } = Date;
      vi.spyOn(Date, 'now').mockImplementation(() => now() + 60_000);
      return { suspended: round };
    });
    await suspended;
    expect(pos.requests).toBe(before);
    await system.query('UPDATE placements SET lease_until = now() WHERE service_order_id = $1', [id]);
    expect(await turn(id)).toMatchObject({ state: 'sent' });
    expect(pos.requests).toBe(before + 1);
    expect(await attempts(id)).toMatchObject([{ outcome: 'unknown' }, { outcome: 'placed' }]);
  });

  it.each<PosFault>(['drop-answer', { status: 503, takes: true }])(
    'is looked up at its POS before it is sent again (first answer: %j)',
    async (fault) => {
      plain.behave = ({ attempt }) => (attempt === 1 ? fault : undefined);
      const { id } = await place({ locationId: 'findable' });
      expect(await retried(id)).toMatchObject({ state: 'sent' });
      expect(tickets(id)).toBe(1);
      expect(await attempts(id)).toMatchObject([
        { call: 'createOrder', outcome: 'TryAgain' },
        { call: 'findOrder', outcome: 'placed' },
      ]);
    },
  );

  it('stays in doubt if the POS does not find it within 60 s, and is sent again after that', async () => {
    plain.behave = ({ attempt }) => (attempt === 1 ? { status: 504 } : undefined);
    const { id } = await place({ locationId: 'findable' });
    expect(await retried(id)).toMatchObject({ state: 'in_doubt', cause: { code: 'order_absent_yet' } });
    expect(tickets(id)).toBe(0);
    expect(await afterSeconds(id, 61)).toMatchObject({ state: 'sent' });
    expect(tickets(id)).toBe(1);
    const outcomes = (await attempts(id)).map((each) => each['outcome']);
    expect(outcomes).toEqual(['TryAgain', 'absent', 'absent', 'placed']);
  });

  it('fails after the deadline if the POS does not find it', async () => {
    plain.behave = () => ({ status: 504 });
    const { id, state } = await place({ locationId: 'findable' });
    expect(state).toBe('in_doubt');
    expect(await afterSeconds(id, 1_801)).toMatchObject({ state: 'failed' });
    expect((await attempts(id)).map((each) => each['call'])).toEqual(['createOrder', 'findOrder']);
  });

  it('waits for an operator and is not sent again if the POS neither deduplicates nor offers a lookup', async () => {
    plain.behave = () => 'drop-answer';
    const placement = await place({ locationId: 'blind' });
    const { id } = placement;
    expect(placement).toMatchObject({ ...FOR_A_PERSON, cause: { code: 'pos_silent' } });
    expect(await afterSeconds(id, 1_801)).toMatchObject({ ...FOR_A_PERSON, cause: { code: 'pos_cannot_be_asked' } });
    expect(tickets(id)).toBe(1);
    expect(await attempts(id)).toHaveLength(1);
    expect(system.logged.some((line) => line.includes('an operator must say') && line.includes(id))).toBe(true);
  });

  it('stays in doubt if a person finds no ticket within a minute of the request, because the ticket may still come', async () => {
    plain.behave = () => 'drop-answer';
    const { id } = await place({ locationId: 'blind' });
    const early = await resolveNotThere(system.pool, id);
    expect(early).toMatchObject({
      cause: { code: 'absent_too_early' },
      refused: expect.stringMatching(/in \d\d s/),
    });
    expect(await system.placement(id)).toMatchObject({ state: 'in_doubt', absent_at: null });
    await aMinuteLater(system.pool, id);
    expect(await resolveNotThere(system.pool, id)).toMatchObject({ state: 'waiting' });
  });

  it('stays in doubt if a person finds no ticket within a minute of the lease of a process that died in the request', async () => {
    plain.behave = () => 'drop-answer';
    const { id } = await place({ locationId: 'blind' });
    await aMinuteLater(system.pool, id);
    await system.query(
      `UPDATE placement_attempts SET ended_at = NULL, outcome = 'unknown' WHERE service_order_id = $1`,
      [id],
    );
    await system.query(`UPDATE placements SET lease_until = now() - interval '5 s' WHERE service_order_id = $1`, [id]);
    expect(await resolveNotThere(system.pool, id)).toMatchObject({ cause: { code: 'absent_too_early', seconds: 55 } });
  });

  it('is in doubt since the call that got no answer, until the doubt is settled', async () => {
    plain.behave = ({ attempt }) => (attempt === 1 ? { status: 429 } : 'drop-answer');
    const { id } = await place({ locationId: 'blind' });
    const first = await retried(id);
    const [refused] = await attempts(id);
    expect(Number(first['doubt_since'])).toBeGreaterThan(Number(refused?.['ended_at']));
    expect(await retried(id)).toMatchObject({ ...FOR_A_PERSON, doubt_since: first['doubt_since'] });
    expect(await resolveAMinuteLater(system, id)).toMatchObject({ state: 'waiting' });
    const again = await turn(id);
    expect(again).toMatchObject(FOR_A_PERSON);
    expect(Number(again['doubt_since'])).toBeGreaterThan(Number(first['doubt_since']));
  });

  it.each([503, 500, 408])(
    'is the result of a %i from a POS that does not deduplicate, because the POS may have taken the order',
    async (status) => {
      plain.behave = () => ({ status, takes: true });
      const placement = await place({ locationId: 'blind' });
      expect(placement).toMatchObject({ ...FOR_A_PERSON, cause: { code: 'pos_failing' } });
      expect(tickets(placement.id)).toBe(1);
      expect(await attempts(placement.id)).toHaveLength(1);
    },
  );

  it.each([
    [429, 'waiting'],
    [422, 'failed'],
    [401, 'held'],
  ])('is not the result of a refusal with %i: the order is %s', async (status, state) => {
    plain.behave = () => ({ status });
    expect(await place({ locationId: 'blind' })).toMatchObject({ state });
  });

  it('is settled by a webhook that names our order at its location', async () => {
    plain.behave = () => 'drop-answer';
    const { id } = await place({ locationId: 'blind' });
    const received = statusWebhook({ serviceOrderId: id, status: 'RECEIVED' });
    await post(await system.webhookUrl('club-1'), received);
    expect(await system.placement(id)).toMatchObject({ state: 'in_doubt' });
    const url = await system.webhookUrl('blind');
    expect((await post(url, received)).body['outcome']).toBe('applied');
    expect(await system.placement(id)).toMatchObject({ state: 'sent', lease_id: null, problem: null, cause: null });
    await post(url, statusWebhook({ serviceOrderId: id, providerOrderId: 'p-1', status: 'RECEIVED' }));
    expect(await retried(id)).toMatchObject({ provider_order_id: 'p-1' });
    expect(tickets(id)).toBe(1);
  });
});

describe('when the POS sends a webhook before its answer', () => {
  /** Places an order at a POS whose webhook arrives while our createOrder still waits for its answer. */
  async function placeAtHastyPos(
    integration: string,
    report: (serviceOrderId: string) => object,
  ): Promise<{ id: string; outcomes: unknown[] }> {
    const outcomes: unknown[] = [];
    const locationId = `hasty-${integration}`;
    const server = await serveHttp(async (request, response) => {
      const order = JSON.parse(Buffer.concat(await request.toArray()).toString()) as { serviceOrderId: string };
      outcomes.push((await post(url, report(order.serviceOrderId))).body['outcome']);
      sendJson(response, 200, { providerOrderId: `pos-${order.serviceOrderId}` });
    });
    await system.addLocation(locationId, { ordersUrl: `${server.url}/orders` }, integration);
    const url = await system.webhookUrl(locationId);
    const { id } = await place({ locationId });
    await server.stop();
    return { id, outcomes };
  }

  it('a webhook with our id moves the order, and no `sent` is published after it', async () => {
    const { id, outcomes } = await placeAtHastyPos('standard', (serviceOrderId) =>
      statusWebhook({ serviceOrderId, status: 'RECEIVED' }),
    );
    expect(outcomes).toEqual(['applied']);
    expect(await system.order(id)).toMatchObject({
      status: 'received',
      sequence: 2,
      provider_order_id: `pos-${id}`,
    });
    expect(await memberStates(id)).toEqual(['placed', 'confirmed']);
    expect(await attempts(id)).toMatchObject([{ outcome: 'placed' }]);
  });

  it('a webhook with only the POS id waits for the answer, and then moves the order', async () => {
    const { id, outcomes } = await placeAtHastyPos('findable', (serviceOrderId) =>
      statusWebhook({ providerOrderId: `pos-${serviceOrderId}`, status: 'IN_PROGRESS' }),
    );
    expect(outcomes).toEqual(['parked']);
    await until(async () => (await system.order(id))?.['status'] === 'in_progress');
    expect(await memberStates(id)).toEqual(['placed', 'sent', 'preparing']);
  });
});

describe('fair shares', () => {
  it('a POS that hangs delays only its own orders', async () => {
    await system.addLocation('hanging', { ordersUrl: plain.ordersUrl }, 'hanging');
    for (let nth = 0; nth < 6; nth += 1) await system.placeOrder({ locationId: 'hanging' });
    const round = system.round('placements');
    const released = `SELECT FROM placements WHERE location_id = 'hanging' AND lease_id IS NULL`;
    await until(async () => hanging.length >= 4 && (await system.query(released)).length >= 2);
    expect(await place()).toMatchObject({ state: 'sent' });
    expect(hanging).toHaveLength(4);
    for (const answer of hanging) answer({});
    await round;
  });

  it('a platform that hangs delays no order that is already fetched', async () => {
    pos.behave = ({ attempt }) => (attempt === 1 ? { status: 503 } : undefined);
    const { id } = await place();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    system.platform.answer = () => promise;
    const other = await system.placeOrder();
    const hangs = system.round('placements');
    await until(() => system.platform.requests.includes(other.serviceOrderId));
    // The turn that hangs takes the first order too, if its back-off was over by then.
    await retried(id);
    await until(async () => (await system.placement(id))?.['state'] === 'sent');
    expect(await system.placement(other.serviceOrderId)).toMatchObject({ location_id: null });
    resolve(undefined);
    await hangs;
    expect(await system.placement(other.serviceOrderId)).toMatchObject({ location_id: 'club-1' });
  });
});
