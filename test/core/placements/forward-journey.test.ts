import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { readConfig } from '../../../src/server/config.ts';
import { createLog } from '../../../src/observe/create-log.ts';
import { parseAllowedHosts } from '../../../src/core/egress/allowed-hosts.ts';
import { pauseLocation, resumeLocation } from '../../../src/core/locations/locations.ts';
import { putLocation } from '../../../src/core/locations/put-location.ts';
import { parseSettingsKeys } from '../../../src/core/locations/settings-key.ts';
import { NeedsOperator } from '../../../src/core/domain/errors.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { standard } from '../../../src/providers/standard/index.ts';
import { registry } from '../../../src/providers/index.ts';
import { buildServer } from '../../../src/server/build-server.ts';
import { freePort } from '../../support/free-port.ts';
import { orderRefetcher, refetchUnlessRefused } from '../../../src/core/placements/refetch-order.ts';
import { resolveNotThere } from '../../../src/core/placements/resolve-doubt.ts';
import { aMinuteLater, resolveAMinuteLater } from '../../support/resolve-a-minute-later.ts';
import { loadOrderModule } from '../../../src/platform/load-order-module.ts';
import { blind, findable } from '../../support/pos-without-deduplication.ts';
import { sampleOrder } from '../../support/sample-order.ts';
import { sendJson, serveHttp } from '../../support/serve-http.ts';
import { startPos, type Pos, type PosFault } from '../../support/start-pos.ts';
import { post, startSystem, statusWebhook, type System } from '../../support/start-system.ts';
import { until } from '../../support/until.ts';

/** A POS that recognises a repeat for an hour. */
const forgetful: Provider = { ...(standard as Provider), integration: 'forgetful', deduplicatesForS: 3_600 };

/** What is held is tried again after 30 s, whatever happens. */
const BEFORE_HELD_AGAIN_MS = 25_000;

let system: System;
let pos: Pos;
let plain: Pos;
/** An order that is at its POS, so that a signal for it does nothing but wake the workers. */
let sent: string;

beforeAll(async () => {
  [system, pos, plain] = await Promise.all([
    startSystem({ providers: [blind, findable, forgetful] }),
    startPos(),
    startPos({ deduplicates: false }),
  ]);
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  await system.addLocation('blind', { ordersUrl: plain.ordersUrl }, 'blind');
  await system.addLocation('findable', { ordersUrl: plain.ordersUrl }, 'findable');
  sent = (await system.placeOrder()).serviceOrderId;
});
afterEach(() => {
  pos.behave = undefined;
  plain.behave = undefined;
  system.platform.answer = undefined;
});
afterAll(() => Promise.all([system?.stop(), pos?.stop(), plain?.stop()]));

const tickets = (serviceOrderId: string): number =>
  [...pos.tickets, ...plain.tickets].filter((ticket) => ticket.serviceOrderId === serviceOrderId).length;
const attempts = (serviceOrderId: string): Promise<Record<string, unknown>[]> =>
  system.query('SELECT * FROM placement_attempts WHERE service_order_id = $1 ORDER BY attempt', [serviceOrderId]);
/** A worker looks once a second, or when a signal comes. */
const reaches = (serviceOrderId: string, state: string, ms?: number): Promise<Record<string, unknown>> =>
  until(async () => {
    const placement = await system.placement(serviceOrderId);
    if (placement?.['state'] === state) return placement;
    const isDue = placement?.['lease_until'] === null && Number(placement['next_attempt_at']) <= Date.now();
    if (isDue) await system.signal(sent);
    return undefined;
  }, ms);
async function due(serviceOrderId: string): Promise<void> {
  await system.query('UPDATE placements SET next_attempt_at = now() WHERE service_order_id = $1', [serviceOrderId]);
  await system.signal(sent);
}
/** Lets time pass for one placement. */
async function age(serviceOrderId: string, seconds: number): Promise<void> {
  await older(serviceOrderId, seconds);
  await due(serviceOrderId);
}
async function older(serviceOrderId: string, seconds: number): Promise<void> {
  await system.query(
    `UPDATE placements
     SET signalled_at = signalled_at - make_interval(secs => $2), deadline_at = deadline_at - make_interval(secs => $2),
         request_ended_at = request_ended_at - make_interval(secs => $2),
         missing_since = missing_since - make_interval(secs => $2)
     WHERE service_order_id = $1`,
    [serviceOrderId, seconds],
  );
}
/** A worker has looked at it, and left it as it was for half a minute. */
const isHeldAgain = (serviceOrderId: string): Promise<unknown> =>
  until(async () => {
    const placement = await system.placement(serviceOrderId);
    return placement?.['state'] === 'held' && Number(placement['next_attempt_at']) > Date.now() + 5_000;
  });
/** Another order goes its way meanwhile, so whatever a signal set off before has been done. */
const anotherGoes = async (): Promise<unknown> => reaches((await system.placeOrder()).serviceOrderId, 'sent');
const memberStates = (serviceOrderId: string): string[] =>
  system.live(serviceOrderId).map((message) => message.memberState);

describe('a signal', () => {
  it('for a known order changes nothing', async () => {
    const { serviceOrderId } = await system.placeOrder();
    await reaches(serviceOrderId, 'sent');
    expect(await Promise.all(Array.from({ length: 5 }, () => system.signal(serviceOrderId)))).toEqual([
      204, 204, 204, 204, 204,
    ]);
    await anotherGoes();
    expect(tickets(serviceOrderId)).toBe(1);
    expect(await attempts(serviceOrderId)).toHaveLength(1);
  });

  it('is only a signal: the order is what the platform says', async () => {
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
    await reaches(order.serviceOrderId, 'sent');
    expect(await system.order(order.serviceOrderId)).toMatchObject({ location_id: 'club-1' });
  });

  it('is not recorded while Postgres does not answer: 503, and Pub/Sub comes again', async () => {
    const blocker = await system.pool.connect();
    await blocker.query('BEGIN');
    await blocker.query('LOCK TABLE placements IN ACCESS EXCLUSIVE MODE');
    const order = sampleOrder();
    const status = await system.signal(order.serviceOrderId);
    await blocker.query('ROLLBACK');
    blocker.release();
    expect(status).toBe(503);
    expect(await system.placement(order.serviceOrderId)).toBeUndefined();
  });
});

describe('try again', () => {
  it.each([429, 500, 503])('the POS answers %i, then takes it: one ticket', async (status) => {
    const behaviour = { status, headers: { 'retry-after': '1' } };
    pos.behave = ({ attempt }) => (attempt === 1 ? behaviour : undefined);
    const { serviceOrderId } = await system.placeOrder();
    const first = await until(async () => (await attempts(serviceOrderId)).find((each) => each['ended_at'] !== null));
    expect(first).toMatchObject({ outcome: 'TryAgain', http_status: status, call: 'createOrder' });
    const placement = await system.placement(serviceOrderId);
    const code = status === 429 ? 'pos_busy' : 'pos_failing';
    expect(placement).toMatchObject({ state: 'waiting', failures: 1, cause: { code, httpStatus: status } });
    // Retry-After is honoured.
    const wait = Number(placement?.['next_attempt_at']) - Number(first['ended_at']);
    expect(wait).toBeGreaterThanOrEqual(900);
    await reaches(serviceOrderId, 'sent');
    expect(tickets(serviceOrderId)).toBe(1);
    expect(await attempts(serviceOrderId)).toMatchObject([{ outcome: 'TryAgain' }, { outcome: 'placed' }]);
  });

  it('no connection to the POS: nothing was sent, so it is not in doubt', async () => {
    await system.addLocation('closed', { ordersUrl: `http://127.0.0.1:${await freePort()}/orders` });
    const { serviceOrderId } = await system.placeOrder({ locationId: 'closed' });
    await until(async () => Number((await system.placement(serviceOrderId))?.['failures']) > 0);
    expect(await system.placement(serviceOrderId)).toMatchObject({
      state: 'waiting',
      problem: expect.stringContaining('ECONNREFUSED'),
      cause: { code: 'pos_unreachable' },
    });
    await system.addLocation('closed', { ordersUrl: pos.ordersUrl });
    await reaches(serviceOrderId, 'sent');
  });

  it.each([
    ['down', 'down' as const],
    ['without the order yet', 'null' as const],
    ['NOT_FOUND yet', { errors: [{ message: 'none', extensions: { code: 'NOT_FOUND' } }] }],
    ['out of order', { errors: [{ message: 'ada@example.com broke it', extensions: { code: 'INTERNAL' } }] }],
  ])('the platform is %s, then answers', async (_what, fault) => {
    let calls = 0;
    system.platform.answer = () => (calls++ === 0 ? fault : undefined);
    const { serviceOrderId } = await system.placeOrder();
    expect(await reaches(serviceOrderId, 'sent')).toMatchObject({ problem: null, cause: null });
    expect(calls).toBeGreaterThan(1);
    expect(system.logged.join('')).not.toContain('ada@example.com');
  });
});

describe('what needs an operator', () => {
  it('a location that is not configured holds its orders, and putting it sends them', async () => {
    const locationId = `new-${randomUUID()}`;
    const { serviceOrderId } = await system.placeOrder({ locationId });
    expect(await reaches(serviceOrderId, 'held')).toMatchObject({
      problem: 'the location is not configured',
      cause: { code: 'no_location' },
    });
    expect(system.logged.some((line) => line.includes('order held') && line.includes(serviceOrderId))).toBe(true);
    await system.addLocation(locationId, { ordersUrl: pos.ordersUrl });
    await reaches(serviceOrderId, 'sent');
  });

  it.each([401, 403])('the POS says %i: held, and tried again once the location is put anew', async (status) => {
    pos.behave = () => ({ status });
    const { serviceOrderId } = await system.placeOrder();
    expect(await reaches(serviceOrderId, 'held')).toMatchObject({
      failures: 0,
      cause: { code: 'pos_refused_us', httpStatus: status },
    });
    pos.behave = undefined;
    await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
    await reaches(serviceOrderId, 'sent');
  });

  it('settings that no longer fit hold the orders, even past the deadline while the location is paused', async () => {
    await system.addLocation('odd', { ordersUrl: pos.ordersUrl });
    const { rows } = await system.pool.query<{ settings: string }>(
      `SELECT settings FROM locations WHERE location_id = 'odd'`,
    );
    await system.query(`UPDATE locations SET settings = 'no JWE at all', paused_at = now() WHERE location_id = 'odd'`);
    const { serviceOrderId } = await system.placeOrder({ locationId: 'odd' });
    await reaches(serviceOrderId, 'held');
    await age(serviceOrderId, 1_801);
    await isHeldAgain(serviceOrderId);
    expect(await system.placement(serviceOrderId)).toMatchObject({
      state: 'held',
      problem: 'the location is paused',
      cause: { code: 'location_paused' },
    });
    await system.query(`UPDATE locations SET paused_at = now() - interval '1 h' WHERE location_id = 'odd'`);
    await resumeLocation(system.pool, 'odd');
    await until(async () =>
      String((await system.placement(serviceOrderId))?.['problem']).includes('cannot be decrypted'),
    );
    expect(await system.placement(serviceOrderId)).toMatchObject({ cause: { code: 'settings_sealed' } });
    await system.query(`UPDATE locations SET settings = $1 WHERE location_id = 'odd'`, [rows[0]?.settings]);
    await due(serviceOrderId);
    await reaches(serviceOrderId, 'sent');
  });

  it('an answer without the field of the default query is ours to fix, and does not end the order', async () => {
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

  it.each(['FORBIDDEN', 'UNAUTHENTICATED'])('the platform says %s: held', async (code) => {
    system.platform.answer = () => ({ errors: [{ message: 'no', extensions: { code } }] });
    const { serviceOrderId } = await system.placeOrder();
    expect(await reaches(serviceOrderId, 'held')).toMatchObject({ cause: { code: 'platform_refuses_us' } });
    system.platform.answer = undefined;
    await due(serviceOrderId);
    await reaches(serviceOrderId, 'sent');
  });

  it('the platform redirects: held, and its token goes nowhere else', async () => {
    const seen: IncomingHttpHeaders[] = [];
    const elsewhere = await serveHttp((request, response) => {
      seen.push(request.headers);
      sendJson(response, 200, {});
    });
    system.platform.answer = () => ({ redirect: elsewhere.url });
    const { serviceOrderId } = await system.placeOrder();
    expect(await reaches(serviceOrderId, 'held')).toMatchObject({
      cause: { code: 'platform_redirects', httpStatus: 307 },
      problem: expect.stringContaining('ORDER_API_URL') as string,
    });
    expect(seen).toEqual([]);
    await elsewhere.stop();
    system.platform.answer = undefined;
    await due(serviceOrderId);
    await reaches(serviceOrderId, 'sent');
  });

  it('a platform that redirects is spared as one that refuses us: it does so to every order', async () => {
    let asked = 0;
    const refetch = refetchUnlessRefused(async () => {
      asked += 1;
      throw new NeedsOperator('elsewhere', { cause: { code: 'platform_redirects' } });
    });
    for (let nth = 0; nth < 9; nth += 1) await expect(refetch(`order-${nth}`)).rejects.toThrow('elsewhere');
    expect(asked).toBe(3);
  });

  it('the platform answers without an end: held, and read no further than an order goes', async () => {
    system.platform.answer = () => 'endless';
    const { serviceOrderId } = await system.placeOrder();
    expect(await reaches(serviceOrderId, 'held')).toMatchObject({ cause: { code: 'platform_answer_too_large' } });
    system.platform.answer = undefined;
    await due(serviceOrderId);
    await reaches(serviceOrderId, 'sent');
  });

  it('a location leads to a host that may not be called: held, with words that tell the host alone', async () => {
    const location = { locationId: 'inside', integration: 'standard' };
    const settings = { ordersUrl: 'http://127.0.0.2:9/hidden?key=hidden', unsigned: true };
    // Put by a version that knew no such rule, or while ALLOW_PRIVATE_HOSTS named it.
    const keys = parseSettingsKeys(system.env['SETTINGS_KEY'] ?? '');
    const rules = { registry, keys, publicUrl: undefined, allowedHosts: parseAllowedHosts('127.0.0.2') };
    await putLocation(system.pool, rules, { ...location, settings });
    const { serviceOrderId } = await system.placeOrder({ locationId: 'inside' });
    expect(await reaches(serviceOrderId, 'held')).toMatchObject({
      cause: { code: 'pos_host_refused', reason: 'loopback' },
      problem: expect.stringMatching(/^127\.0\.0\.2: (?!.*hidden).*ALLOW_PRIVATE_HOSTS/) as string,
    });
    await system.addLocation('inside', { ordersUrl: pos.ordersUrl });
    await reaches(serviceOrderId, 'sent');
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['a million burgers', { items: [{ ...sampleOrder().items[0], quantity: 1_000_000 }] }, 'items.0.quantity'],
    ['no items', { items: [] }, 'items'],
    ['a delivery without a destination', { fulfillment: { type: 'delivery' } }, 'fulfillment.destination'],
    ['a made-up currency', { money: { ...sampleOrder().money, currency: '47 Ada' } }, 'money.currency'],
    ['another order than the one asked for', { serviceOrderId: 'another' }, 'serviceOrderId'],
  ])('%s: the order is held, without its values, and sent once it can be read', async (_what, wrong, path) => {
    const order = sampleOrder();
    const { serviceOrderId } = order;
    system.platform.orders.set(serviceOrderId, { ...order, ...wrong });
    await system.signal(serviceOrderId);
    const placement = await reaches(serviceOrderId, 'held');
    expect(placement['problem']).toContain(`the order cannot be read: ${path} `);
    expect(placement['cause']).toMatchObject({ code: 'order_unreadable', issues: [{ path }] });
    expect(JSON.stringify([placement['problem'], placement['cause']])).not.toMatch(/47|Ada|another/);
    expect(await system.order(serviceOrderId)).toBeUndefined();
    system.platform.orders.set(serviceOrderId, order);
    await due(serviceOrderId);
    await reaches(serviceOrderId, 'sent');
  });

  it('an order that cannot be read is fetched again at a new signal, and when a process starts', async () => {
    const orders = [sampleOrder(), sampleOrder()] as const;
    for (const order of orders) {
      system.platform.orders.set(order.serviceOrderId, { ...order, items: [] });
      await system.signal(order.serviceOrderId);
      await isHeldAgain(order.serviceOrderId);
      system.platform.orders.set(order.serviceOrderId, order);
    }
    expect(await system.signal(orders[0].serviceOrderId)).toBe(204);
    await reaches(orders[0].serviceOrderId, 'sent', BEFORE_HELD_AGAIN_MS);
    expect(await system.placement(orders[1].serviceOrderId)).toMatchObject({ state: 'held' });
    const log = createLog('error', { write: () => {} });
    const another = await buildServer(readConfig(system.env), { registry, log, env: {} });
    await another.start();
    await reaches(orders[1].serviceOrderId, 'sent', BEFORE_HELD_AGAIN_MS);
    await another.drain();
  });

  it('many orders that cannot be read are no platform that refuses us', async () => {
    const orders = Array.from({ length: 5 }, () => ({ ...sampleOrder(), items: [] }));
    for (const order of orders) {
      system.platform.orders.set(order.serviceOrderId, order);
      await system.signal(order.serviceOrderId);
      await reaches(order.serviceOrderId, 'held');
    }
    const { serviceOrderId } = await system.placeOrder();
    await reaches(serviceOrderId, 'sent', BEFORE_HELD_AGAIN_MS);
  });

  it('a platform that refuses us is asked by one order now and then, not by each', async () => {
    const errors = [{ message: 'no', extensions: { code: 'UNAUTHENTICATED' } }];
    system.platform.answer = () => ({ errors });
    const ids: string[] = [];
    const hold = async (): Promise<void> => {
      const { serviceOrderId } = await system.placeOrder();
      ids.push(serviceOrderId);
      await reaches(serviceOrderId, 'held');
    };
    for (let nth = 0; nth < 3; nth += 1) await hold();
    const asked = system.platform.requests.length;
    const began = performance.now();
    for (let nth = 0; nth < 12; nth += 1) await hold();
    const probes = Math.ceil((performance.now() - began) / 5_000);
    expect(system.platform.requests.length - asked).toBeLessThanOrEqual(probes);
    expect(await system.placement(ids.at(-1) ?? '')).toMatchObject({ cause: { code: 'platform_refuses_us' } });
    // The first order that gets an answer ends it for all.
    system.platform.answer = undefined;
    await sleep(5_000);
    for (const id of ids) await due(id);
    await until(async () => {
      for (const id of ids) if ((await system.placement(id))?.['state'] === 'held') await due(id);
      return (await Promise.all(ids.map((id) => system.placement(id)))).every((each) => each?.['state'] === 'sent');
    });
  });

  it('a paused location holds, the paused time does not count, and resuming sends', async () => {
    await system.addLocation('paused', { ordersUrl: pos.ordersUrl });
    await pauseLocation(system.pool, 'paused');
    const { serviceOrderId } = await system.placeOrder({ locationId: 'paused' });
    await reaches(serviceOrderId, 'held');
    await age(serviceOrderId, 3_000);
    await system.query(`UPDATE locations SET paused_at = now() - interval '3000 s' WHERE location_id = 'paused'`);
    await isHeldAgain(serviceOrderId);
    await resumeLocation(system.pool, 'paused');
    await reaches(serviceOrderId, 'sent');
    expect(memberStates(serviceOrderId)).not.toContain('failed');
  });

  it('what was mended while the POS still answered counts at once, not after 30 s', async () => {
    let calls = 0;
    const server = await serveHttp(async (request, response) => {
      await request.toArray();
      calls += 1;
      if (calls === 1) await system.addLocation('mended', { ordersUrl: `${server.url}/orders` });
      sendJson(response, calls === 1 ? 401 : 200, { providerOrderId: 'p' });
    });
    await system.addLocation('mended', { ordersUrl: `${server.url}/orders` });
    const { serviceOrderId } = await system.placeOrder({ locationId: 'mended' });
    await reaches(serviceOrderId, 'sent', BEFORE_HELD_AGAIN_MS);
    expect(calls).toBe(2);
    await server.stop();
  });
});

describe('final', () => {
  it('the POS rejects it: failed at once, with the reason for the member', async () => {
    pos.behave = () => ({ status: 422, body: { reason: 'out of buns' } });
    const { serviceOrderId } = await system.placeOrder();
    expect(await reaches(serviceOrderId, 'failed')).toMatchObject({
      cause: { code: 'pos_rejected_order', httpStatus: 422 },
    });
    expect(await system.order(serviceOrderId)).toMatchObject({
      status: 'failed',
      reason: 'out of buns',
      failed_by_us: true,
    });
    const live = await until(() => system.live(serviceOrderId).length === 2 && system.live(serviceOrderId));
    expect(live).toMatchObject([
      { memberState: 'placed', sequence: 1 },
      { memberState: 'failed', sequence: 2, reason: 'out of buns', status: 'failed' },
    ]);
    expect(await attempts(serviceOrderId)).toHaveLength(1);
  });

  it('a refusal in words that Postgres cannot store is as final', async () => {
    pos.behave = () => ({ status: 422, body: { reason: 'out of \0buns' } });
    const { serviceOrderId } = await system.placeOrder();
    await reaches(serviceOrderId, 'failed');
    expect(await system.order(serviceOrderId)).toMatchObject({ status: 'failed', reason: 'out of buns' });
    expect((await attempts(serviceOrderId)).at(-1)).toMatchObject({ outcome: 'GiveUp' });
  });

  it('an order that has ended is never attempted again', async () => {
    pos.behave = () => ({ status: 503 });
    const { serviceOrderId } = await system.placeOrder();
    await until(async () => Number((await system.placement(serviceOrderId))?.['failures']) > 0);
    await system.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1', [serviceOrderId]);
    const before = (await attempts(serviceOrderId)).length;
    pos.behave = undefined;
    await due(serviceOrderId);
    expect(await reaches(serviceOrderId, 'failed')).toMatchObject({
      problem: 'the order has ended',
      cause: { code: 'order_ended' },
    });
    expect(await attempts(serviceOrderId)).toHaveLength(before);
    expect(tickets(serviceOrderId)).toBe(0);
  });

  it('BAD_USER_INPUT', async () => {
    system.platform.answer = () => ({ errors: [{ message: 'no', extensions: { code: 'BAD_USER_INPUT' } }] });
    const { serviceOrderId } = await system.placeOrder();
    expect(await reaches(serviceOrderId, 'failed')).toMatchObject({ cause: { code: 'order_id_invalid' } });
  });

  it('no such order for 120 s from the first such answer, not from the signal', async () => {
    system.platform.answer = () => 'down';
    const { serviceOrderId } = await system.placeOrder();
    await until(async () => Number((await system.placement(serviceOrderId))?.['failures']) > 0);
    await age(serviceOrderId, 1_000);
    let nulls = 0;
    system.platform.answer = () => (nulls++ === 0 ? 'null' : undefined);
    expect(await reaches(serviceOrderId, 'sent')).toMatchObject({ missing_since: null });
    expect(nulls).toBeGreaterThan(1);
  });

  it('no such order for 120 s', async () => {
    const serviceOrderId = `ghost-${randomUUID()}`;
    await system.signal(serviceOrderId);
    await until(async () => Number((await system.placement(serviceOrderId))?.['failures']) > 0);
    expect(await system.placement(serviceOrderId)).toMatchObject({
      state: 'waiting',
      cause: { code: 'order_missing_yet' },
    });
    await age(serviceOrderId, 121);
    expect(await reaches(serviceOrderId, 'failed')).toMatchObject({
      problem: 'the platform has no such order',
      cause: { code: 'order_missing' },
    });
  });

  it('only for an order that was read: another begins again with a signal, and what it tells goes on', async () => {
    system.platform.answer = () => ({ errors: [{ message: 'no', extensions: { code: 'BAD_USER_INPUT' } }] });
    const { serviceOrderId } = await system.placeOrder();
    await reaches(serviceOrderId, 'failed');
    const [told] = await until(() => system.live(serviceOrderId).length === 1 && system.live(serviceOrderId));
    expect(told).toEqual({
      serviceOrderId,
      sequence: 1,
      status: 'failed',
      memberState: 'failed',
      reason: 'the order could not be read',
      reasonCode: 'technical',
      appliedAt: expect.any(String),
    });
    const published = system.pubsub.published('order-status').find((each) => each.orderingKey === serviceOrderId);
    expect(published?.attributes).toMatchObject({
      type: 'orderStatusChanged',
      serviceOrderId,
      status: 'failed',
      memberState: 'failed',
      sequence: '1',
    });
    expect(published?.attributes).not.toHaveProperty('locationId');
    await older(serviceOrderId, 3_000);
    system.platform.answer = () => 'down';
    expect(await system.signal(serviceOrderId)).toBe(204);
    const again = await until(async () => {
      const placement = await system.placement(serviceOrderId);
      return placement?.['state'] === 'waiting' && Number(placement['failures']) > 0 && placement;
    });
    expect(Number(again['deadline_at']) - Date.now()).toBeGreaterThan(1_700_000);
    system.platform.answer = undefined;
    expect(await reaches(serviceOrderId, 'sent')).toMatchObject({ problem: null, cause: null });
    await until(() => memberStates(serviceOrderId).length === 3);
    expect(memberStates(serviceOrderId)).toEqual(['failed', 'placed', 'sent']);
    expect(system.live(serviceOrderId).map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    expect(await system.order(serviceOrderId)).toMatchObject({ sequence: 3 });
  });

  it('a signal for one that failed after it was fetched changes nothing', async () => {
    pos.behave = () => ({ status: 422 });
    const { serviceOrderId } = await system.placeOrder();
    const failed = await reaches(serviceOrderId, 'failed');
    pos.behave = undefined;
    expect(await system.signal(serviceOrderId)).toBe(204);
    await anotherGoes();
    expect(await system.placement(serviceOrderId)).toEqual(failed);
    expect(tickets(serviceOrderId)).toBe(0);
  });

  it('progress reported for an order that we failed is a conflict', async () => {
    pos.behave = () => ({ status: 422 });
    const { serviceOrderId } = await system.placeOrder();
    await reaches(serviceOrderId, 'failed');
    const url = await system.webhookUrl('club-1');
    expect((await post(url, statusWebhook({ serviceOrderId, status: 'IN_PROGRESS' }))).body['outcome']).toBe('stale');
    expect(
      await system.query('SELECT conflict FROM status_events WHERE service_order_id = $1 ORDER BY event_id', [
        serviceOrderId,
      ]),
    ).toEqual([{ conflict: false }, { conflict: true }]);
  });
});

describe('the deadline', () => {
  const NOT_ASKED = { reason: 'the restaurant could not take the order', reasonCode: 'technical' };

  it('a POS that cannot be reached until then: failed, and the member is told', async () => {
    pos.behave = () => ({ status: 503 });
    const { serviceOrderId } = await system.placeOrder();
    await until(async () => Number((await system.placement(serviceOrderId))?.['failures']) > 0);
    await age(serviceOrderId, 1_801);
    expect(await reaches(serviceOrderId, 'failed')).toMatchObject({ cause: { code: 'deadline_passed' } });
    expect(await system.order(serviceOrderId)).toMatchObject({ status: 'failed', reason: 'could not reach the POS' });
    await until(() => memberStates(serviceOrderId).includes('failed'));
  });

  it('a platform that cannot be reached until then: failed, and the member is told', async () => {
    system.platform.answer = () => 'down';
    const { serviceOrderId } = await system.placeOrder();
    await until(async () => Number((await system.placement(serviceOrderId))?.['failures']) > 0);
    await age(serviceOrderId, 1_801);
    await reaches(serviceOrderId, 'failed');
    expect(await system.order(serviceOrderId)).toBeUndefined();
    const [told] = await until(() => system.live(serviceOrderId).length > 0 && system.live(serviceOrderId));
    expect(told).toMatchObject({ memberState: 'failed', ...NOT_ASKED });
  });

  it('an order that could not be read until then: failed for its last problem, and the POS is not blamed', async () => {
    const order = sampleOrder();
    const { serviceOrderId } = order;
    system.platform.orders.set(serviceOrderId, { ...order, items: [] });
    await system.signal(serviceOrderId);
    const { problem } = await reaches(serviceOrderId, 'held');
    await age(serviceOrderId, 1_801);
    expect(await reaches(serviceOrderId, 'failed')).toMatchObject({
      cause: { code: 'deadline_passed' },
      problem: `the deadline has passed; last problem: ${String(problem)}`,
    });
    const [told] = await until(() => system.live(serviceOrderId).length > 0 && system.live(serviceOrderId));
    expect(told).toMatchObject({ memberState: 'failed', ...NOT_ASKED });
  });

  it('an order that was held until then after it was read: the POS is not blamed', async () => {
    pos.behave = () => ({ status: 401 });
    const { serviceOrderId } = await system.placeOrder();
    await reaches(serviceOrderId, 'held');
    await age(serviceOrderId, 1_801);
    await reaches(serviceOrderId, 'failed');
    expect(await until(() => system.live(serviceOrderId).find(({ status }) => status === 'failed'))).toMatchObject(
      NOT_ASKED,
    );
  });

  it('failures that are told again go on counting, above a floor as well', async () => {
    system.platform.answer = () => ({ errors: [{ message: 'no', extensions: { code: 'BAD_USER_INPUT' } }] });
    const { serviceOrderId } = await system.placeOrder();
    for (let nth = 1; nth <= 3; nth += 1) {
      await until(() => system.live(serviceOrderId).length === nth);
      if (nth === 2) await system.query('INSERT INTO sequence_floor (floor) VALUES (1000)');
      if (nth < 3) await system.signal(serviceOrderId);
    }
    await system.query('DELETE FROM sequence_floor');
    expect(system.live(serviceOrderId).map(({ sequence }) => sequence)).toEqual([1, 2, 1_001]);
  });

  it('counts from requestedAt where that is later', async () => {
    pos.behave = () => ({ status: 503 });
    const requestedAt = new Date(Date.now() + 7_200_000).toISOString();
    const { serviceOrderId } = await system.placeOrder({ fulfillment: { type: 'pickup', requestedAt } });
    await until(async () => Number((await system.placement(serviceOrderId))?.['failures']) > 0);
    await age(serviceOrderId, 1_801);
    pos.behave = undefined;
    await reaches(serviceOrderId, 'sent');
  });
});

describe('in doubt', () => {
  it('a POS that deduplicates is sent the order again: one ticket, same id', async () => {
    pos.behave = ({ attempt }) => (attempt === 1 ? 'drop-answer' : undefined);
    const { serviceOrderId } = await system.placeOrder();
    await reaches(serviceOrderId, 'sent');
    expect(tickets(serviceOrderId)).toBe(1);
    expect(await attempts(serviceOrderId)).toMatchObject([{ outcome: 'TryAgain' }, { outcome: 'placed' }]);
  });

  it('is not failed by the deadline, nor repeated after it: an operator says what is at the POS', async () => {
    pos.behave = ({ attempt }) => (attempt === 1 ? 'drop-answer' : { status: 503 });
    const { serviceOrderId } = await system.placeOrder();
    await reaches(serviceOrderId, 'in_doubt');
    await age(serviceOrderId, 1_801);
    const flagged = await until(async () => {
      const placement = await system.placement(serviceOrderId);
      return placement?.['next_attempt_at'] === Infinity && placement;
    });
    expect(flagged).toMatchObject({
      state: 'in_doubt',
      problem: expect.stringContaining('deadline has passed'),
      cause: { code: 'deadline_passed_in_doubt' },
    });
    pos.behave = undefined;
    const before = (await attempts(serviceOrderId)).length;
    await anotherGoes();
    expect(await attempts(serviceOrderId)).toHaveLength(before);
    expect(memberStates(serviceOrderId)).not.toContain('failed');
  });

  it('a repeat that fails may still make a ticket: the minute begins again', async () => {
    pos.behave = ({ attempt }) => (attempt === 1 ? 'drop-answer' : { status: 503, headers: { 'retry-after': '60' } });
    const { serviceOrderId } = await system.placeOrder();
    await until(async () => (await attempts(serviceOrderId))[1]?.['ended_at'] ?? undefined);
    const [, repeat] = await attempts(serviceOrderId);
    const endedAt = Number((await system.placement(serviceOrderId))?.['request_ended_at']);
    expect(endedAt).toBeGreaterThan(Number(repeat?.['started_at']));
  });

  const taken: PosFault[] = ['drop-answer', { status: 503, takes: true }];
  it.each(taken)('is repeated no longer than the POS recognises a repeat, after %j: a person looks', async (first) => {
    await system.addLocation('forgetful', { ordersUrl: pos.ordersUrl, unsigned: true }, 'forgetful');
    pos.behave = ({ attempt }) => (attempt === 1 ? first : { status: 503, headers: { 'retry-after': '60' } });
    const { serviceOrderId } = await system.placeOrder({ locationId: 'forgetful' });
    // Within the hour it is sent again.
    await until(async () => (await attempts(serviceOrderId)).length === 2);
    await until(async () => (await system.placement(serviceOrderId))?.['lease_until'] === null);
    await system.query(
      `UPDATE placement_attempts SET started_at = started_at - interval '3590 s' WHERE service_order_id = $1`,
      [serviceOrderId],
    );
    pos.behave = undefined;
    await due(serviceOrderId);
    const flagged = await until(async () => {
      const placement = await system.placement(serviceOrderId);
      return placement?.['next_attempt_at'] === Infinity && placement;
    });
    expect(flagged).toMatchObject({ state: 'in_doubt', cause: { code: 'repeat_unrecognised' } });
    expect(await attempts(serviceOrderId)).toHaveLength(2);
  });

  it('a repeat that is refused does not fail the order: the first request may have made a ticket', async () => {
    pos.behave = ({ attempt }) => (attempt === 1 ? 'drop-answer' : { status: 422, body: { reason: 'closed now' } });
    const { serviceOrderId } = await system.placeOrder();
    expect(
      await until(async () => {
        const placement = await system.placement(serviceOrderId);
        return placement?.['next_attempt_at'] === Infinity && placement;
      }),
    ).toMatchObject({
      state: 'in_doubt',
      problem: expect.stringContaining('refuses the repeat'),
      cause: { code: 'repeat_refused', httpStatus: 422 },
    });
    expect(memberStates(serviceOrderId)).not.toContain('failed');
    expect(tickets(serviceOrderId)).toBe(1);
  });

  it.each([
    ['another POS', 'findable', { code: 'location_left_pos', integration: 'standard' }],
    ['another till of the same vendor', 'standard', { code: 'pos_account_changed' }],
  ])('stays where it is when its location moves to %s: nobody there could tell', async (_where, integration, cause) => {
    await system.addLocation('moving', { ordersUrl: pos.ordersUrl });
    pos.behave = ({ attempt }) => (attempt === 1 ? 'drop-answer' : { status: 503, headers: { 'retry-after': '60' } });
    const { serviceOrderId } = await system.placeOrder({ locationId: 'moving' });
    await until(async () => (await attempts(serviceOrderId)).length === 2);
    await system.addLocation('moving', { ordersUrl: plain.ordersUrl }, integration);
    await until(async () => (await system.placement(serviceOrderId))?.['next_attempt_at'] === Infinity);
    expect(await system.placement(serviceOrderId)).toMatchObject({ cause });
    expect(tickets(serviceOrderId)).toBe(1);
    expect(plain.tickets.some((ticket) => ticket.serviceOrderId === serviceOrderId)).toBe(false);
  });

  it('does not come of a database that fails just when the answer is stored', async () => {
    const server = await serveHttp(async (request, response) => {
      await request.toArray();
      await system.query('ALTER TABLE provider_orders RENAME TO provider_orders_away');
      sendJson(response, 200, { providerOrderId: 'known-all-along' });
      await sleep(700);
      await system.query('ALTER TABLE provider_orders_away RENAME TO provider_orders');
    });
    await system.addLocation('blip', { ordersUrl: `${server.url}/orders` }, 'blind');
    const { serviceOrderId } = await system.placeOrder({ locationId: 'blip' });
    expect(await reaches(serviceOrderId, 'sent')).toMatchObject({ provider_order_id: 'known-all-along' });
    expect(await attempts(serviceOrderId)).toMatchObject([
      { outcome: 'placed', http_status: null, milliseconds: expect.any(Number) },
    ]);
    await server.stop();
  });

  it('does not come of a machine that is suspended before the call: the call is not made, and another makes it', async () => {
    await system.addLocation('suspended', { ordersUrl: pos.ordersUrl });
    await pauseLocation(system.pool, 'suspended');
    const { serviceOrderId } = await system.placeOrder({ locationId: 'suspended' });
    await reaches(serviceOrderId, 'held');
    const before = pos.requests;
    const blocker = await system.pool.connect();
    await blocker.query('BEGIN');
    await blocker.query('SELECT FROM orders WHERE service_order_id = $1 FOR UPDATE', [serviceOrderId]);
    await resumeLocation(system.pool, 'suspended');
    await system.signal(sent);
    const waits = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await until(async () => (await system.query(waits)).length > 0);
    // Only its own clock tells: the monotonic one stands still.
    const { now } = Date;
    vi.spyOn(Date, 'now').mockImplementation(() => now() + 60_000);
    await blocker.query('COMMIT');
    blocker.release();
    await until(async () => (await attempts(serviceOrderId)).length === 1);
    await system.query('UPDATE placements SET lease_until = now() WHERE service_order_id = $1', [serviceOrderId]);
    await reaches(serviceOrderId, 'sent');
    vi.restoreAllMocks();
    // The POS got one request, of the second attempt.
    expect(pos.requests).toBe(before + 1);
    expect(await attempts(serviceOrderId)).toMatchObject([{ outcome: 'unknown' }, { outcome: 'placed' }]);
  });

  it('a POS that can be asked is asked first: the ticket is found, no second one made', async () => {
    plain.behave = ({ attempt }) => (attempt === 1 ? 'drop-answer' : undefined);
    const { serviceOrderId } = await system.placeOrder({ locationId: 'findable' });
    await reaches(serviceOrderId, 'sent');
    expect(tickets(serviceOrderId)).toBe(1);
    expect(await attempts(serviceOrderId)).toMatchObject([
      { call: 'createOrder', outcome: 'TryAgain' },
      { call: 'findOrder', outcome: 'placed' },
    ]);
  });

  it('"not there" proves nothing in the first 60 s; afterwards the order is sent again', async () => {
    plain.behave = ({ attempt }) => (attempt === 1 ? { status: 504 } : undefined);
    const { serviceOrderId } = await system.placeOrder({ locationId: 'findable' });
    const cause = expect.objectContaining({ code: 'order_absent_yet' }) as object;
    await vi.waitFor(
      async () => expect(await system.placement(serviceOrderId)).toMatchObject({ state: 'in_doubt', cause }),
      60_000,
    );
    expect(tickets(serviceOrderId)).toBe(0);
    await age(serviceOrderId, 61);
    await reaches(serviceOrderId, 'sent');
    expect(tickets(serviceOrderId)).toBe(1);
    expect((await attempts(serviceOrderId)).map((each) => each['outcome'])).toEqual([
      'TryAgain',
      'absent',
      'absent',
      'placed',
    ]);
  });

  it('"not there" for sure, after the deadline: failed, not sent', async () => {
    plain.behave = () => ({ status: 504 });
    const { serviceOrderId } = await system.placeOrder({ locationId: 'findable' });
    await reaches(serviceOrderId, 'in_doubt');
    await age(serviceOrderId, 1_801);
    await reaches(serviceOrderId, 'failed');
    expect((await attempts(serviceOrderId)).filter((each) => each['call'] === 'createOrder')).toHaveLength(1);
  });

  it('a POS that can neither deduplicate nor be asked: waits for an operator and is not sent again', async () => {
    plain.behave = () => 'drop-answer';
    const { serviceOrderId } = await system.placeOrder({ locationId: 'blind' });
    expect(await reaches(serviceOrderId, 'in_doubt')).toMatchObject({
      next_attempt_at: Infinity,
      cause: { code: 'pos_silent' },
    });
    await age(serviceOrderId, 1_801);
    await until(async () => (await system.placement(serviceOrderId))?.['next_attempt_at'] === Infinity);
    expect(await system.placement(serviceOrderId)).toMatchObject({
      state: 'in_doubt',
      cause: { code: 'pos_cannot_be_asked' },
    });
    expect(tickets(serviceOrderId)).toBe(1);
    expect(await attempts(serviceOrderId)).toHaveLength(1);
    expect(system.logged.some((line) => line.includes('an operator must say') && line.includes(serviceOrderId))).toBe(
      true,
    );
  });

  it('is not ended by a person who finds no ticket within a minute of the request: it may still come', async () => {
    plain.behave = () => 'drop-answer';
    const { serviceOrderId } = await system.placeOrder({ locationId: 'blind' });
    await reaches(serviceOrderId, 'in_doubt');
    const early = await resolveNotThere(system.pool, serviceOrderId);
    expect(early).toMatchObject({
      cause: { code: 'absent_too_early' },
      refused: expect.stringMatching(/in (59|60) s/),
    });
    expect(await system.placement(serviceOrderId)).toMatchObject({ state: 'in_doubt', absent_at: null });
    await aMinuteLater(system.pool, serviceOrderId);
    expect(await resolveNotThere(system.pool, serviceOrderId)).toMatchObject({ state: 'waiting' });
  });

  it('begins with the call without an answer, lasts until it is settled, and may begin again', async () => {
    plain.behave = ({ attempt }) => (attempt === 1 ? { status: 429 } : 'drop-answer');
    const { serviceOrderId } = await system.placeOrder({ locationId: 'blind' });
    const first = await reaches(serviceOrderId, 'in_doubt');
    const [refused] = await attempts(serviceOrderId);
    expect(Number(first['doubt_since'])).toBeGreaterThan(Number(refused?.['ended_at']));
    await due(serviceOrderId);
    await until(async () => (await system.placement(serviceOrderId))?.['next_attempt_at'] === Infinity);
    expect(await system.placement(serviceOrderId)).toMatchObject({ doubt_since: first['doubt_since'] });
    expect(await resolveAMinuteLater(system, serviceOrderId)).toMatchObject({ state: 'waiting' });
    const again = await reaches(serviceOrderId, 'in_doubt');
    expect(Number(again['doubt_since'])).toBeGreaterThan(Number(first['doubt_since']));
  });

  it.each([
    [503, 'blind', 'pos_failing'],
    [500, 'blind', 'pos_failing'],
    [408, 'blind', 'pos_failing'],
  ])(
    'comes of a %i of a POS that does not deduplicate: it may have taken the order',
    async (status, locationId, code) => {
      plain.behave = () => ({ status, takes: true });
      const { serviceOrderId } = await system.placeOrder({ locationId });
      expect(await reaches(serviceOrderId, 'in_doubt')).toMatchObject({ next_attempt_at: Infinity, cause: { code } });
      expect(tickets(serviceOrderId)).toBe(1);
      expect(await attempts(serviceOrderId)).toHaveLength(1);
    },
  );

  it('comes of a 503 of a POS that can be asked: it is asked, and there is one ticket', async () => {
    plain.behave = ({ attempt }) => (attempt === 1 ? { status: 503, takes: true } : undefined);
    const { serviceOrderId } = await system.placeOrder({ locationId: 'findable' });
    await reaches(serviceOrderId, 'sent');
    expect(tickets(serviceOrderId)).toBe(1);
  });

  it.each([429, 422, 401])('does not come of a %i, which refuses the order', async (status) => {
    plain.behave = () => ({ status });
    const { serviceOrderId } = await system.placeOrder({ locationId: 'blind' });
    const state = { 429: 'waiting', 422: 'failed', 401: 'held' }[status] ?? '';
    await until(async () => (await attempts(serviceOrderId)).some((each) => each['ended_at'] !== null));
    await reaches(serviceOrderId, state);
  });

  it('a webhook that names our order at its location settles it', async () => {
    plain.behave = () => 'drop-answer';
    const { serviceOrderId } = await system.placeOrder({ locationId: 'blind' });
    await reaches(serviceOrderId, 'in_doubt');
    const elsewhere = await system.webhookUrl('club-1');
    await post(elsewhere, statusWebhook({ serviceOrderId, status: 'RECEIVED' }));
    expect(await system.placement(serviceOrderId)).toMatchObject({ state: 'in_doubt' });
    const url = await system.webhookUrl('blind');
    expect((await post(url, statusWebhook({ serviceOrderId, status: 'RECEIVED' }))).body['outcome']).toBe('applied');
    expect(await system.placement(serviceOrderId)).toMatchObject({
      state: 'sent',
      lease_id: null,
      problem: null,
      cause: null,
    });
    await post(url, statusWebhook({ serviceOrderId, providerOrderId: 'p-1', status: 'RECEIVED' }));
    expect(await system.placement(serviceOrderId)).toMatchObject({ provider_order_id: 'p-1' });
    await due(serviceOrderId);
    await anotherGoes();
    expect(tickets(serviceOrderId)).toBe(1);
  });
});

describe('when the POS reports before it answers', () => {
  /** A POS whose webhook arrives while our createOrder still waits for its answer. */
  async function hastyPos(
    integration: string,
    report: (serviceOrderId: string) => object,
  ): Promise<{ outcomes: unknown[]; stop(): Promise<void> }> {
    const outcomes: unknown[] = [];
    let url = '';
    const server = await serveHttp(async (request, response) => {
      const order = JSON.parse(Buffer.concat(await request.toArray()).toString()) as { serviceOrderId: string };
      outcomes.push((await post(url, report(order.serviceOrderId))).body['outcome']);
      sendJson(response, 200, { providerOrderId: `pos-${order.serviceOrderId}` });
    });
    await system.addLocation(`hasty-${integration}`, { ordersUrl: `${server.url}/orders` }, integration);
    url = await system.webhookUrl(`hasty-${integration}`);
    return { outcomes, stop: () => server.stop() };
  }

  it('by our id: the event moves the order, the OrderRef is stored, and no `sent` is published after it', async () => {
    const hasty = await hastyPos('standard', (serviceOrderId) => statusWebhook({ serviceOrderId, status: 'RECEIVED' }));
    const { serviceOrderId } = await system.placeOrder({ locationId: 'hasty-standard' });
    await until(async () => (await system.order(serviceOrderId))?.['provider_order_id'] === `pos-${serviceOrderId}`);
    expect(hasty.outcomes).toEqual(['applied']);
    expect(await system.order(serviceOrderId)).toMatchObject({ status: 'received', sequence: 2 });
    await until(() => system.live(serviceOrderId).length === 2);
    expect(memberStates(serviceOrderId)).toEqual(['placed', 'confirmed']);
    expect((await attempts(serviceOrderId))[0]).toMatchObject({ outcome: 'placed' });
    await hasty.stop();
  });

  it('by its own id alone: the event waits for the answer, and then moves the order', async () => {
    const hasty = await hastyPos('findable', (serviceOrderId) =>
      statusWebhook({ providerOrderId: `pos-${serviceOrderId}`, status: 'IN_PROGRESS' }),
    );
    const { serviceOrderId } = await system.placeOrder({ locationId: 'hasty-findable' });
    await until(async () => (await system.order(serviceOrderId))?.['status'] === 'in_progress');
    expect(hasty.outcomes).toEqual(['parked']);
    await until(() => system.live(serviceOrderId).length === 3);
    expect(memberStates(serviceOrderId)).toEqual(['placed', 'sent', 'preparing']);
    await hasty.stop();
  });
});

describe('fair shares', () => {
  it('a POS that hangs keeps only its own orders waiting', async () => {
    const hanging = await startPos();
    hanging.behave = () => 'hang';
    await system.addLocation('hanging', { ordersUrl: `${hanging.url}/orders` });
    await Promise.all(Array.from({ length: 80 }, () => system.placeOrder({ locationId: 'hanging' })));
    await until(() => hanging.requests >= 4);
    await anotherGoes();
    const [called] = await system.query(
      `SELECT count(*)::int AS n FROM placements WHERE location_id = 'hanging' AND lease_until > now()`,
    );
    expect(called?.['n']).toBeLessThanOrEqual(4);
    await hanging.stop();
    await system.query(`UPDATE placements SET finished_at = now(), state = 'failed' WHERE location_id = 'hanging'`);
  });

  it('a vendor that hangs at a hundred locations keeps only their own orders waiting', async () => {
    const hanging = await startPos();
    hanging.behave = () => 'hang';
    const locationIds = Array.from({ length: 100 }, (_, nth) => `vendor-${nth}`);
    for (const locationId of locationIds) await system.addLocation(locationId, { ordersUrl: `${hanging.url}/orders` });
    for (let each = 0; each < 4; each += 1) {
      await Promise.all(locationIds.map((locationId) => system.placeOrder({ locationId })));
    }
    await until(() => hanging.requests >= 100);
    await anotherGoes();
    expect(hanging.requests).toBeLessThan(400);
    await hanging.stop();
    await system.query(`UPDATE placements SET finished_at = now(), state = 'failed' WHERE location_id LIKE 'vendor-%'`);
  });

  it('a platform that hangs keeps no order waiting that was fetched before', async () => {
    pos.behave = () => ({ status: 503 });
    const { serviceOrderId } = await system.placeOrder();
    await until(async () => Number((await system.placement(serviceOrderId))?.['failures']) > 0);
    system.platform.answer = () => 'hang';
    const asked = system.platform.requests.length;
    const stuck = await Promise.all(Array.from({ length: 70 }, () => system.placeOrder()));
    await until(() => system.platform.requests.length > asked);
    pos.behave = undefined;
    await due(serviceOrderId);
    await reaches(serviceOrderId, 'sent');
    const ids = stuck.map((order) => order.serviceOrderId);
    const failing = 'SELECT FROM placements WHERE service_order_id = ANY ($1) AND failures > 0';
    expect((await system.query(failing, [ids])).length).toBeLessThan(70);
    await system.query('DELETE FROM placements WHERE service_order_id = ANY ($1)', [ids]);
  });
});
