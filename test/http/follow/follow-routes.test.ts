import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MemberMessage, MemberSnapshot } from '../../../src/core/domain/member-message.ts';
import { readEvents, type ReadEvents } from '../../support/read-events.ts';
import { FOLLOW_ENV, memberToken } from '../../../world/members/member-token.ts';
import { startPos, type Pos } from '../../../world/pos/start-pos.ts';
import { post, startSystem, statusWebhook, type System } from '../../../world/system/start-system.ts';
import { until } from '../../../world/processes/until.ts';
import { whilePostgresIsAway } from '../../support/while-postgres-is-away.ts';

const ORIGIN = 'https://order.example.com';
const MOST = 12;

let system: System;
let pos: Pos;
let webhook: string;
const open: ReadEvents[] = [];

beforeAll(async () => {
  pos = await startPos();
  system = await startSystem({
    processes: 2,
    env: { ...FOLLOW_ENV, MEMBER_ORIGINS: `https://other.example.com,${ORIGIN}`, FOLLOW_STREAMS_MAX: `${MOST}` },
  });
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  webhook = await system.webhookUrl('club-1');
});
afterAll(async () => {
  for (const each of open) each.leave();
  await system?.stop();
  await pos?.stop();
});

/** At the second process, while webhooks come to the first. */
async function follow(
  serviceOrderId: string,
  { last, seconds, at = 1, query = '' }: { last?: number; seconds?: number; at?: number; query?: string } = {},
): Promise<ReadEvents> {
  const read = await readEvents(`${system.urls[at]}/follow?${query}`, {
    authorization: `Bearer ${await memberToken(serviceOrderId, seconds)}`,
    ...(last !== undefined && { 'last-event-id': `${last}` }),
  });
  open.push(read);
  return read;
}

const requestOf = async (serviceOrderId: string): Promise<string> =>
  `GET /follow HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${await memberToken(serviceOrderId)}\r\n\r\n`;

async function connectTo(at: number): Promise<{ socket: Socket; seen: () => string }> {
  const socket = connect(Number(new URL(system.urls[at] ?? '').port), '127.0.0.1');
  let text = '';
  socket.on('data', (bytes) => void (text += bytes.toString()));
  socket.on('error', () => {});
  await once(socket, 'connect');
  return { socket, seen: () => text };
}

const report = (serviceOrderId: string, status: string, more: object = {}): Promise<unknown> =>
  post(webhook, statusWebhook({ serviceOrderId, providerOrderId: `pos-${serviceOrderId}`, status, ...more }));
/** Places an order. @returns its id once its POS has it and the topic has said so */
const placed = async (): Promise<string> => {
  const { serviceOrderId } = await system.placeOrder({ locationId: 'club-1' });
  await until(() => system.live(serviceOrderId).length === 2);
  return serviceOrderId;
};
const briefly = ({ events }: ReadEvents): string[] =>
  events.map(({ id, event, data }) => `${id ?? '-'} ${event} ${(data as { memberState?: string }).memberState ?? ''}`);

describe('a member who follows an order', () => {
  it('gets a snapshot, then each message as it is published, and the event `end`', async () => {
    const { serviceOrderId } = await system.placeOrder({ locationId: 'club-1', serviceOrderId: 'whole/1' });
    await until(() => system.live(serviceOrderId).length === 2);
    const followed = await follow(serviceOrderId);
    await until(() => followed.events.length === 1);
    await report(serviceOrderId, 'RECEIVED');
    await report(serviceOrderId, 'READY');
    await until(() => followed.events.length === 3);
    await report(serviceOrderId, 'CANCELLED', { reason: 'no bread' });
    await followed.ended;

    expect(briefly(followed)).toEqual([
      '2 snapshot sent',
      '3 orderStatusChanged confirmed',
      '4 orderStatusChanged ready_for_pickup',
      '5 orderStatusChanged cancelled',
      '- end ',
    ]);
    await until(() => system.live(serviceOrderId).length === 5);
    const told = system
      .live(serviceOrderId)
      .map(({ serviceOrderId: _a, locationId: _b, providerOrderId: _c, ...rest }) => rest);
    expect(followed.events.slice(1, 4).map(({ data }) => data)).toEqual(told.slice(2));
    const snapshot = MemberSnapshot.strict().parse(followed.events[0]?.data);
    expect(snapshot).toEqual({ ...told[1], sequence: 2, requestedAt: undefined });
    for (const { data } of followed.events.slice(1, 4)) MemberMessage.strict().parse(data);
    expect(followed.retries).toEqual([expect.any(Number)]);
    expect(followed.headers.get('cache-control')).toBe('no-store, no-transform');
    expect(followed.headers.get('x-accel-buffering')).toBe('no');
    expect(followed.headers.get('x-content-type-options')).toBe('nosniff');

    const late = await follow(serviceOrderId);
    await late.ended;
    expect(briefly(late)).toEqual(['5 snapshot cancelled', '- end ']);
    expect(late.events[0]?.data).toMatchObject({ reason: 'no bread' });
    expect((await follow(serviceOrderId, { last: 5 })).status).toBe(204);
    // So sends the last event id who cannot send a header.
    expect((await follow(serviceOrderId, { query: 'lastEventId=5' })).status).toBe(204);
  });

  it('gets no location, no POS id and no reason of the kitchen while the order continues', async () => {
    const serviceOrderId = await placed();
    const followed = await follow(serviceOrderId);
    await until(() => followed.events.length === 1);
    await report(serviceOrderId, 'IN_PROGRESS', { reason: 'the guest is a nuisance' });
    const late = await follow(serviceOrderId);
    await report(serviceOrderId, 'COMPLETED');
    await Promise.all([followed.ended, late.ended]);
    expect(late.events.length).toBe(3);
    const seen = JSON.stringify([followed.events, late.events]);
    expect(seen).not.toMatch(/club-1|pos-|standard|locationId|providerOrderId|nuisance/);
  });

  it('gets the tracking link in the message and in later snapshots', async () => {
    const trackingUrl = 'https://courier.example/1';
    const serviceOrderId = await placed();
    const followed = await follow(serviceOrderId);
    await until(() => followed.events.length === 1);
    await report(serviceOrderId, 'EN_ROUTE', { trackingUrl });
    const told = await until(() => followed.events.find(({ data }) => Object(data).status === 'en_route'));
    expect(MemberMessage.strict().parse(told.data)).toMatchObject({ trackingUrl });
    const late = await follow(serviceOrderId);
    const [snapshot] = await until(() => (late.events.length > 0 ? late.events : undefined));
    expect(MemberSnapshot.strict().parse(snapshot?.data)).toMatchObject({ status: 'en_route', trackingUrl });
    await report(serviceOrderId, 'COMPLETED');
    await Promise.all([followed.ended, late.ended]);
  });

  it('gets the snapshot `placed` before the signal arrives, and then each message', async () => {
    const followed = await follow('of-tomorrow');
    await until(() => followed.events.length === 1);
    const requestedAt = '2099-01-31T18:45:00+00:00';
    await system.placeOrder({
      locationId: 'club-1',
      serviceOrderId: 'of-tomorrow',
      fulfillment: { type: 'pickup', requestedAt },
    });
    await until(() => followed.events.length === 3);
    expect(followed.events[1]?.data).toMatchObject({ requestedAt });
    expect(briefly(followed)).toEqual([
      '0 snapshot placed',
      '1 orderStatusChanged placed',
      '2 orderStatusChanged sent',
    ]);
    expect(followed.events[0]?.data).toEqual({ sequence: 0, status: null, memberState: 'placed' });
  });

  it('gets the reason why an unreadable order failed', async () => {
    system.platform.answer = () => ({ errors: [{ message: 'no', extensions: { code: 'BAD_USER_INPUT' } }] });
    const { serviceOrderId } = await system.placeOrder({ locationId: 'club-1' });
    const followed = await follow(serviceOrderId);
    await followed.ended;
    system.platform.answer = undefined;
    const late = await follow(serviceOrderId);
    await late.ended;
    for (const { events } of [followed, late]) {
      expect(events.at(-2)?.data).toMatchObject({ memberState: 'failed', reason: 'the order could not be read' });
      expect(events.at(-1)).toMatchObject({ event: 'end', data: { sequence: 1 } });
    }
  });

  it('gets `placed` and no failure for an order that the mapper skipped', async () => {
    system.platform.answer = () => ({ order: { skipped: 'dine_in' } });
    const { serviceOrderId } = await system.placeOrder({ locationId: 'club-1' });
    await until(async () => (await system.placement(serviceOrderId))?.['state'] === 'withdrawn');
    system.platform.answer = undefined;
    const late = await follow(serviceOrderId);
    await late.ended;
    expect(late.events[0]?.data).toMatchObject({ sequence: 0, memberState: 'placed' });
  });

  it('gets every message after Last-Event-ID if all of these are still stored, or else a snapshot', async () => {
    await system.seedOrder({ serviceOrderId: 'resumed', locationId: 'club-1' });
    for (const status of ['RECEIVED', 'IN_PROGRESS', 'READY']) await report('resumed', status);
    const resumed = await follow('resumed', { last: 3 });
    await until(() => resumed.events.length === 2);
    expect(briefly(resumed)).toEqual(['4 orderStatusChanged preparing', '5 orderStatusChanged ready_for_pickup']);

    await until(() => system.live('resumed').length === 3);
    await until(async () => (await system.query(`SELECT FROM outbox WHERE service_order_id = 'resumed'`)).length === 0);
    await system.query(`DELETE FROM live_messages WHERE service_order_id = 'resumed'`);
    const forgotten = await follow('resumed', { last: 3 });
    await until(() => forgotten.events.length === 1);
    expect(briefly(forgotten)).toEqual(['5 snapshot ready_for_pickup']);
    await report('resumed', 'COMPLETED');
    await forgotten.ended;
    expect(briefly(forgotten).slice(1)).toEqual(['6 orderStatusChanged picked_up', '- end ']);
  });

  it('gets the event `expired` when the token expires', async () => {
    await system.seedOrder({ serviceOrderId: 'renewed', locationId: 'club-1' });
    // Half a minute beyond its end it is taken, for clocks that differ.
    const followed = await follow('renewed', { seconds: -28 });
    await followed.ended;
    expect(briefly(followed)).toEqual(['2 snapshot sent', '- expired ']);
    expect(followed.events.at(-1)?.data).toEqual({});
    expect((await follow('renewed', { seconds: -31 })).status).toBe(401);
    expect((await follow('renewed', { last: 2 })).status).toBe(200);
  });

  it('can send the token in the query, but not as a cookie', async () => {
    await system.seedOrder({ serviceOrderId: 'by-url', locationId: 'club-1' });
    const token = await memberToken('by-url');
    const url = `${system.urls[1]}/follow`;
    const followed = await readEvents(`${url}?token=${token}`, {});
    open.push(followed);
    await until(() => followed.events.length === 1);
    expect(followed.status).toBe(200);
    const statusOf = async (method: string, path: string): Promise<number> =>
      (await fetch(path, { method, headers: { cookie: `token=${token}` } })).status;
    expect(await statusOf('GET', url)).toBe(401);
    expect(await statusOf('GET', `${url}?token=${token}&token=${token}`)).toBe(401);
    for (const method of ['HEAD', 'POST', 'DELETE']) expect(await statusOf(method, `${url}?token=${token}`)).toBe(404);
    expect(system.logged.join('')).not.toContain(token);
  });
});

describe('a page of another origin', () => {
  const ask = (method: string, origin: string, path = '/follow'): Promise<Response> =>
    fetch(`${system.urls[0]}${path}`, { method, headers: { origin, 'access-control-request-method': 'GET' } });
  const allowed = ({ headers }: Response): string | null => headers.get('access-control-allow-origin');

  it('can follow an order if MEMBER_ORIGINS names its origin', async () => {
    const preflight = await ask('OPTIONS', ORIGIN);
    expect([preflight.status, allowed(preflight)]).toEqual([204, ORIGIN]);
    const headers = preflight.headers.get('access-control-allow-headers')?.split(', ');
    // A page whose requests are traced sends more.
    expect(headers).toEqual(expect.arrayContaining(['authorization', 'last-event-id', 'traceparent', 'baggage', '*']));
    const refused = await ask('GET', ORIGIN);
    expect([refused.status, allowed(refused)]).toEqual([401, ORIGIN]);
    const token = await memberToken('by-page');
    const left = new AbortController();
    const stream = await fetch(`${system.urls[0]}/follow?token=${token}`, {
      headers: { origin: ORIGIN },
      signal: left.signal,
    });
    left.abort();
    expect([stream.status, allowed(stream), stream.headers.get('vary')]).toEqual([200, ORIGIN, 'origin']);
  });

  it('cannot follow if MEMBER_ORIGINS does not name its origin', async () => {
    for (const origin of ['https://evil.example.com', 'null', `${ORIGIN}.evil.example.com`, '*']) {
      expect(allowed(await ask('OPTIONS', origin))).toBe(null);
      expect(allowed(await ask('GET', origin))).toBe(null);
    }
  });
});

/** Takes all places of the second process, and no more. */
async function crowd(): Promise<ReadEvents[]> {
  const crowded: ReadEvents[] = [];
  return until(async () => {
    const one = await follow('crowded');
    if (one.status === 200) crowded.push(one);
    return crowded.length === MOST && crowded;
  });
}

it('a stream beyond FOLLOW_STREAMS_MAX is answered 503 until another one ends', async () => {
  for (const each of open.splice(0)) each.leave();
  const [first] = await crowd();
  const beyond = await follow('crowded');
  expect(beyond.status).toBe(503);
  expect(Number(beyond.headers.get('retry-after'))).toBeGreaterThanOrEqual(5);
  expect((await follow('crowded', { at: 0 })).status, 'the other process').toBe(200);
  first?.leave();
  await until(async () => (await follow('crowded')).status === 200);
  for (const each of open.splice(0)) each.leave();
});

it('a member who leaves while the token is verified does not count for FOLLOW_STREAMS_MAX', async () => {
  for (const each of open.splice(0)) each.leave();
  const request = await requestOf('hasty');
  for (let i = 0; i < 3 * MOST; i++) {
    const { socket } = await connectTo(1);
    socket.write(request, () => void socket.resetAndDestroy());
  }
  await crowd();
  for (const each of open.splice(0)) each.leave();
});

it.each([
  ['another request', (request: string) => request],
  ['a text that is not a request', () => 'nonsense\r\n\r\n'],
])('a stream is closed without an answer after %s on its connection', async (_what, more) => {
  const request = await requestOf('alone');
  const { socket, seen } = await connectTo(0);
  socket.write(request);
  await until(() => seen().includes('snapshot'));
  socket.write(more(request));
  await once(socket, 'close');
  expect(seen().split('HTTP/1.1 ').length).toBe(2);
});

it('a stream continues after an outage of Postgres, even if it was opened during the outage', async () => {
  await system.seedOrder({ serviceOrderId: 'outlived', locationId: 'club-1' });
  const before = await follow('outlived');
  await until(() => before.events.length === 1);
  const meanwhile = await whilePostgresIsAway(system.databaseUrl, async () => {
    const followed = await follow('outlived');
    expect([followed.status, followed.events]).toEqual([200, []]);
    return followed;
  });
  await until(async () => ((await report('outlived', 'COMPLETED')) as { status: number }).status === 200);
  await Promise.all([before.ended, meanwhile.ended]);
  expect(briefly(before)).toEqual(['2 snapshot sent', '3 orderStatusChanged picked_up', '- end ']);
  expect(briefly(meanwhile).at(-1)).toBe('- end ');
});

it('a drain ends every stream with a retry time, and another process continues after Last-Event-ID', async () => {
  await system.seedOrder({ serviceOrderId: 'moved', locationId: 'club-1' });
  const followed = await Promise.all(Array.from({ length: 5 }, () => follow('moved')));
  await until(() => followed.every(({ events }) => events.length === 1));
  await system.drain(1);
  await Promise.all(followed.map(({ ended }) => ended));
  for (const { events, retries } of followed) {
    expect(events.map(({ event }) => event)).toEqual(['snapshot']);
    expect(retries.length).toBe(2);
  }
  await report('moved', 'RECEIVED');
  const again = await follow('moved', { last: 2, at: 0 });
  await until(() => again.events.length === 1);
  expect(briefly(again)).toEqual(['3 orderStatusChanged confirmed']);
});
