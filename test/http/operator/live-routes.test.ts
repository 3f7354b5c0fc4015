import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { LiveMessage } from '../../../src/core/domain/live-message.ts';
import { eventStream } from '../../../src/http/operator/event-stream.ts';
import { OPERATOR_TOKEN, askOperator } from '../../../world/system/ask-operator.ts';
import { holdOpen } from '../../support/hold-open.ts';
import { logIn, nameToken } from '../../../world/system/log-in.ts';
import { readEvents, type ReadEvents } from '../../support/read-events.ts';
import { startPos } from '../../../world/pos/start-pos.ts';
import { post, startSystem, statusWebhook, type System } from '../../../world/system/start-system.ts';
import { until } from '../../../world/processes/until.ts';
import { whilePostgresIsAway } from '../../support/while-postgres-is-away.ts';

const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };

let system: System;
let webhook: string;
const open: ReadEvents[] = [];

beforeAll(async () => {
  system = await startSystem({ processes: 2, env: { OPERATOR_TOKEN } });
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  webhook = await system.webhookUrl('club-1');
});
afterAll(async () => {
  for (const each of open) each.leave();
  await system?.stop();
});

/** At the second process, while webhooks come to the first. */
async function follow(serviceOrderId: string, lastEventId?: string): Promise<ReadEvents> {
  const read = await readEvents(`${system.urls[1]}/v1/orders/${encodeURIComponent(serviceOrderId)}/live`, {
    ...headers,
    ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
  });
  open.push(read);
  return read;
}

const report = (serviceOrderId: string, status: string): Promise<unknown> =>
  post(webhook, statusWebhook({ serviceOrderId, providerOrderId: `pos-${serviceOrderId}`, status }));
const withoutReason = ({ reason: _reason, ...message }: LiveMessage): object => message;
const idsOf = ({ events }: ReadEvents): (string | undefined)[] => events.map(({ id }) => id);

describe('the live stream of an order', () => {
  it("has each message of the topic without the POS's text, and ends with the order", async () => {
    await system.placeOrder({ serviceOrderId: 'whole/1', locationId: 'club-1' });
    // Nobody listens there: the first webhook proves the ticket.
    await until(() => system.live('whole/1').length === 1);
    const followed = await follow('whole/1');
    expect(followed.status).toBe(200);
    expect(followed.headers.get('cache-control')).toBe('no-store, no-transform');
    expect(followed.headers.get('x-content-type-options')).toBe('nosniff');
    for (const status of ['RECEIVED', 'READY']) await report('whole/1', status);
    const body = statusWebhook({ serviceOrderId: 'whole/1', status: 'CANCELLED', reason: 'no bread' }) as {
      order: object;
    };
    await post(webhook, { ...body, order: { ...body.order, occurredAt: '2026-11-21T18:30:00+01:00' } });
    await followed.ended;

    await until(() => system.live('whole/1').length === 4);
    const told = followed.events.filter(({ event }) => event === 'orderStatusChanged');
    expect(system.live('whole/1').at(-1)).toMatchObject({ reason: 'no bread' });
    expect(told.map(({ data }) => data)).toEqual(system.live('whole/1').map(withoutReason));
    expect(told.map(({ id }) => id)).toEqual(['1', '2', '3', '4']);
    expect(followed.events.at(-1)).toEqual({ id: undefined, event: 'end', data: { sequence: 4 } });
    expect(followed.retries).toEqual([2000]);

    // Out of what is kept, once the topic has it all.
    const again = await follow('whole/1');
    await again.ended;
    expect(again.events).toEqual(followed.events);
  });

  it('has each message that its own process applies', async () => {
    await system.seedOrder({ serviceOrderId: 'prompt', locationId: 'club-1' });
    const followed = await readEvents(`${system.urls[0]}/v1/orders/prompt/live`, headers);
    open.push(followed);
    for (const [nth, status] of ['RECEIVED', 'IN_PROGRESS', 'READY'].entries()) {
      await report('prompt', status);
      await until(() => followed.events.length === nth + 1);
    }
  });

  it('continues after Last-Event-ID, and is answered 204 if an ended order has no more messages', async () => {
    await system.seedOrder({ serviceOrderId: 'resumed', locationId: 'club-1' });
    for (const status of ['RECEIVED', 'IN_PROGRESS', 'READY']) await report('resumed', status);
    const first = await follow('resumed', '3');
    await until(() => first.events.length === 2);
    first.leave();
    await report('resumed', 'COMPLETED');
    const second = await follow('resumed', '5');
    await second.ended;
    expect([idsOf(first), idsOf(second)]).toEqual([
      ['4', '5'],
      ['6', undefined],
    ]);
    expect((await follow('resumed', '6')).status).toBe(204);
  });

  it.each([['-1'], ['x'], ['1.5'], ['99999999999'], ['']])(
    'is answered 400 if Last-Event-ID is invalid: "%s"',
    async (id) => {
      await system.seedOrder({ serviceOrderId: `bad-${id}`, locationId: 'club-1' });
      expect((await follow(`bad-${id}`, id)).status).toBe(400);
    },
  );

  it('continues after an outage of Postgres', async () => {
    await system.seedOrder({ serviceOrderId: 'outlived', locationId: 'club-1' });
    const followed = await follow('outlived');
    await report('outlived', 'RECEIVED');
    await until(() => followed.events.length === 1);

    await whilePostgresIsAway(system.databaseUrl, async () => {
      for (const path of ['/orders', '/orders/outlived', '/orders/outlived/live', '/webhooks', '/locations']) {
        const answer = await fetch(`${system.urls[1]}/v1${path}`, { headers });
        expect([path, answer.status, answer.headers.get('retry-after')]).toEqual([path, 503, '2']);
        expect(await answer.json()).toMatchObject({ detail: 'The database is unavailable. Try again later.' });
      }
      await until(() => system.logged.some((line) => line.includes('live messages cannot be read')), 15_000);
    });
    await until(async () => {
      const answer = (await report('outlived', 'COMPLETED')) as { status: number };
      return answer.status === 200;
    });
    await followed.ended;
    expect(idsOf(followed)).toEqual(['3', '4', undefined]);
  });

  it('is limited to half of all streams for operators of one location', async () => {
    await system.seedOrder({ serviceOrderId: 'halved', locationId: 'club-1' });
    const crowd: ReadEvents[] = [];
    for (let nth = 0; nth < 4; nth += 1) {
      const authorization = `Bearer ${await nameToken(system, `club-1 ${nth}`, ['viewer'], ['club-1'])}`;
      for (let group = 0; group < 3; group += 1) {
        const reading = Array.from({ length: 10 }, () =>
          readEvents(`${system.urls[1]}/v1/orders/halved/live`, { authorization }),
        );
        crowd.push(...(await Promise.all(reading)));
      }
    }
    expect(crowd.filter(({ status }) => status === 200).length).toBe(100);
    expect((await follow('halved')).status).toBe(200);
    for (const { leave } of crowd) leave();
  });

  it('is answered 503 beyond 200 streams, until a reader leaves', async () => {
    await system.seedOrder({ serviceOrderId: 'crowded', locationId: 'club-1' });
    const { port } = new URL(system.urls[1] ?? '');
    const ask = (): Promise<{ status: string; leave: () => void }> => {
      const socket = connect(Number(port), '127.0.0.1');
      socket.on('error', () => {});
      socket.write(
        `GET /v1/orders/crowded/live HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization}\r\n\r\n`,
      );
      return new Promise((resolve) => {
        socket.once('data', (chunk) =>
          resolve({ status: chunk.toString().slice(9, 12), leave: () => void socket.destroy() }),
        );
      });
    };
    // Each reads its order first: all at once would wait too long for one of the pool's few connections.
    const answers: Awaited<ReturnType<typeof ask>>[] = [];
    while (answers.length < 205) answers.push(...(await Promise.all(Array.from({ length: 5 }, ask))));
    expect(answers.filter(({ status }) => status === '503').length).toBeGreaterThanOrEqual(5);
    expect(answers.filter(({ status }) => status === '200').length).toBeGreaterThan(150);
    // Consoles and boards have the same places, and not as many again.
    const byConsole = { cookie: await logIn(system.urls[1] ?? '') };
    for (const [path, as] of [
      ['/console/api/orders/crowded/live', byConsole],
      ['/v1/live', headers],
    ] as const) {
      expect((await readEvents(`${system.urls[1]}${path}`, as)).status, path).toBe(503);
    }
    for (const { leave } of answers) leave();
    await until(async () => {
      const again = await follow('crowded');
      again.leave();
      return again.status === 200;
    });
  });

  it('ends without the event `end` when its process stops', async () => {
    await system.seedOrder({ serviceOrderId: 'drained', locationId: 'club-1' });
    const followed = await follow('drained');
    await report('drained', 'RECEIVED');
    await until(() => followed.events.length === 1);
    const holder = await holdOpen(system.databaseUrl, 'LOCK TABLE live_messages IN ACCESS EXCLUSIVE MODE');
    const beginning = follow('drained');
    await until(async () => {
      const [waiting] = await system.query(
        `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%unnest%requested%' AND datname = current_database()`,
      );
      return waiting !== undefined;
    });
    const drained = system.drain(1);
    await followed.ended;
    await holder.end();
    const begun = await beginning;
    await Promise.all([drained, begun.ended]);
    expect([idsOf(followed), idsOf(begun)]).toEqual([['3'], ['3']]);
    expect(begun.status).toBe(200);
    expect(system.logged.join('')).not.toContain('running calls were abandoned');
  });
});

it('the timeline of an order has all events from the signal to the published messages', async () => {
  const pos = await startPos();
  await system.addLocation('with-a-pos', { ordersUrl: pos.ordersUrl });
  const { serviceOrderId } = await system.placeOrder({ locationId: 'with-a-pos' });
  await until(async () => (await system.placement(serviceOrderId))?.['state'] === 'sent');
  const ticket = await until(() => pos.tickets.find((each) => each.serviceOrderId === serviceOrderId));
  const sent = await post(
    await system.webhookUrl('with-a-pos'),
    statusWebhook({ serviceOrderId, providerOrderId: ticket.providerOrderId, status: 'READY' }),
  );
  const { webhookId } = sent.body;
  await until(() => system.live(serviceOrderId).length === 3);
  const kept = 'SELECT FROM live_messages WHERE service_order_id = $1';
  await until(async () => (await system.query(kept, [serviceOrderId])).length === 3);

  const { status, body } = await (await askOperator(system.urls[0] ?? '')).get(`/orders/${serviceOrderId}`);
  expect(status).toBe(200);
  expect(body).toMatchObject({
    serviceOrderId,
    traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
    placement: { state: 'sent', locationId: 'with-a-pos' },
    order: { memberState: 'ready_for_pickup', providerOrderId: ticket.providerOrderId, sequence: 3 },
    attempts: [{ attempt: 1, call: 'createOrder' }],
    history: [{ status: 'ready', outcome: 'applied', webhookId }],
    webhooks: [{ webhookId, outcome: 'applied', events: 1, replayOf: null }],
    live: [
      { sequence: 1, memberState: 'placed', publishedAt: expect.any(String), attempts: null },
      { sequence: 2, memberState: 'sent', publishedAt: expect.any(String) },
      { sequence: 3, memberState: 'ready_for_pickup', publishedAt: expect.any(String) },
    ],
  });
  const timeline = body['timeline'] as { at: string; what: string; details: Record<string, unknown> }[];
  const happened = timeline.map(({ what }) => what);
  for (const [earlier, later] of [
    ['signalled', 'fetched'],
    ['fetched', 'call began'],
    ['call began', 'call ended'],
    ['call ended', 'status'],
    ['webhook', 'status'],
  ] as const) {
    expect(happened.indexOf(earlier), `${earlier} before ${later}`).toBeLessThan(happened.indexOf(later));
    expect(happened).toContain(earlier);
  }
  expect(happened.filter((what) => what === 'published')).toHaveLength(3);
  const times = timeline.map(({ at }) => Date.parse(at));
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  // Nothing of the member.
  expect(JSON.stringify(body)).not.toMatch(/Lovelace|ada@|\+4930|Burger|member-42/);
  await pos.stop();
});

it('an event stream sends its heartbeat every ten seconds, and nothing after its end', async () => {
  const beats = vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const stream = eventStream({ beat: ':beat\n' });
  let isClosed = false;
  stream.onClose(() => {
    isClosed = true;
  });
  beats.advanceTimersByTime(20_000);
  stream.end();
  // While its reader has not taken what waits, a heartbeat is due again.
  beats.advanceTimersByTime(40_000);
  let heard = '';
  stream.body.on('data', (chunk: Buffer) => {
    heard += chunk.toString();
  });
  await until(() => isClosed);
  expect(heard).toBe('retry: 2000\n:beat\n:beat\n');
  expect(stream.body.errored).toBeNull();
});
