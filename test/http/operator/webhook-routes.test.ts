import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { uuidV7 } from '../../../src/core/domain/uuid-v7.ts';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../../../world/system/ask-operator.ts';
import { holdOpen } from '../../support/hold-open.ts';
import { signWebhook } from '../../../world/pos/sign-webhook.ts';
import { statusWebhook } from '../../../world/pos/status-webhook.ts';
import { nameToken } from '../../../world/system/log-in.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { until } from '../../../world/processes/until.ts';

const secretOf = (byte: number): string => `whsec_${Buffer.alloc(24, byte).toString('base64')}`;
const [RIGHT, WRONG] = [secretOf(1), secretOf(2)];
const ordersUrl = 'http://127.0.0.1:9/orders';

let stage: Stage;
let operator: Operator;

beforeAll(async () => {
  stage = await startStage();
  operator = await askOperator(stage.app);
});
afterAll(() => stage?.stop());

/** A location whose POS signs with another secret than it is configured with. */
async function misconfigured(): Promise<{ locationId: string; url: string }> {
  const locationId = `club-${randomUUID()}`;
  await stage.addLocation(locationId, { ordersUrl, secret: WRONG });
  return { locationId, url: await stage.webhookPath(locationId) };
}

/** @returns the webhook's id */
async function send(url: string, about: Parameters<typeof statusWebhook>[0]): Promise<string> {
  const body = JSON.stringify(statusWebhook(about));
  const answer = await stage.post(url, body, signWebhook(RIGHT, body));
  expect(answer.status).toBe(200);
  return String(answer.body['webhookId']);
}

async function dropped(count: number): Promise<{ locationId: string; orders: string[]; webhooks: string[] }> {
  const { locationId, url } = await misconfigured();
  const orders = Array.from({ length: count }, (_, i) => `${locationId}-${i}`);
  const webhooks: string[] = [];
  for (const serviceOrderId of orders) {
    await stage.seedOrder({ serviceOrderId, locationId });
    webhooks.push(await send(url, { serviceOrderId, status: 'READY' }));
  }
  // A run is about what came before it, by Postgres's clock, which a process knows only about.
  await shift(webhooks, -60);
  return { locationId, orders, webhooks };
}
const shift = (webhooks: string[], seconds: number): Promise<unknown> =>
  stage.query('UPDATE webhooks SET received_at = received_at + make_interval(secs => $2) WHERE id = ANY ($1)', [
    webhooks,
    seconds,
  ]);
const mend = (locationId: string): Promise<void> => stage.addLocation(locationId, { ordersUrl, secret: RIGHT });
const listed = async (query: string): Promise<Record<string, unknown>[]> =>
  (await operator.get(`/webhooks?${query}`)).body['webhooks'] as Record<string, unknown>[];
type Action = Record<string, unknown>;
/** What was done, in the newest 200 of the audit. */
const actions = async (action: string, query = ''): Promise<Action[]> =>
  (await operator.get(`/audit?action=${encodeURIComponent(action)}&limit=200${query}`)).body['actions'] as Action[];
const isAbout =
  (id: string) =>
  ({ webhookId }: Action): boolean =>
    webhookId === id;

it.each([
  ['another wrong secret', { secret: secretOf(3) }, true],
  ['the secret of the POS', { secret: RIGHT }, false],
  ['the secret of the POS as the previous one', { previousSecret: RIGHT }, false],
  ['the secret that is stored already', { secret: WRONG }, false],
])('a dry run with %s says whether dropped webhooks stay refused', async (_, settings, isWarned) => {
  const { locationId } = await dropped(1);
  const path = `/locations/${locationId}?dryRun=true`;
  const { status, body } = await operator.send('PATCH', path, { settings });
  expect(status).toBe(200);
  expect(body['warnings']).toEqual(isWarned ? [expect.stringContaining('would be dropped again')] : []);
  // An integrator may not see webhooks.
  const blind = await askOperator(stage.app, await nameToken(stage, randomUUID(), ['integrator'], [locationId]));
  expect((await blind.send('PATCH', path, { settings })).body['warnings']).toEqual([]);
});

it('a dry run of a secret where no webhook was dropped says nothing', async () => {
  const { locationId } = await misconfigured();
  const { body } = await operator.send('PATCH', `/locations/${locationId}?dryRun=true`, {
    settings: { secret: RIGHT },
  });
  expect(body['warnings']).toEqual([]);
});

describe('webhooks', () => {
  it('are shown without headers and body by contents=false, and this is not in the audit', async () => {
    const { locationId, url } = await misconfigured();
    await mend(locationId);
    await stage.seedOrder({ serviceOrderId: `${locationId}-told`, locationId });
    const about = { serviceOrderId: `${locationId}-told`, status: 'CANCELLED', reason: 'Ada has no allergy' };
    const id = await send(url, about);
    const reads = async (): Promise<number> => (await actions('read webhook')).filter(isAbout(id)).length;
    const masked = await operator.get(`/webhooks/${id}?contents=false`);
    expect(masked.body).toMatchObject({
      webhookId: id,
      outcome: 'applied',
      today: { events: [{ status: 'cancelled', serviceOrderId: about.serviceOrderId }] },
    });
    for (const part of ['headers', 'body']) expect(masked.body).not.toHaveProperty(part);
    expect(masked.text).not.toContain('Ada');
    expect(await reads()).toBe(0);
    for (const query of ['', '?contents=true']) {
      const { body, text } = await operator.get(`/webhooks/${id}${query}`);
      expect(body).toHaveProperty('headers');
      expect(text).toContain('Ada');
    }
    expect(await reads()).toBe(2);
  });

  it('are answered 400 for an invented cursor', async () => {
    const { status, text } = await operator.get(`/webhooks?cursor=${uuidV7()}`);
    expect([status, text]).toEqual([400, expect.stringContaining('cursor')]);
  });

  it('are shown with the reason of a drop, and what a replay would read today', async () => {
    const { locationId, webhooks, orders } = await dropped(1);
    const path = `/webhooks/${webhooks[0]}`;
    const before = await operator.get(path);
    expect(before.body).toMatchObject({
      webhookId: webhooks[0],
      locationId,
      outcome: 'dropped',
      reason: expect.stringContaining('not authentic'),
      headers: { 'webhook-id': 'msg-1' },
      cause: { code: 'signature_wrong', header: 'webhook-signature' },
      webhookAuth: { kind: 'signature', header: 'webhook-signature', settings: ['secret'] },
      today: { dropped: expect.stringContaining('not authentic'), cause: { code: 'signature_wrong' } },
      replays: [],
    });
    const body = before.body['body'] as { base64: string; text: string };
    expect(JSON.parse(body.text)).toMatchObject({ order: { thirdPartyReference: orders[0], status: 'READY' } });
    expect(Buffer.from(body.base64, 'base64').toString()).toBe(body.text);
    expect(before.body['bytes']).toBe(Buffer.byteLength(body.text));
    // What it is verified with is sealed, and stays so.
    expect(before.text).not.toMatch(/token=|sealed/);

    await mend(locationId);
    expect((await operator.get(path)).body['today']).toMatchObject({
      events: [{ status: 'ready', serviceOrderId: orders[0] }],
    });
    expect((await actions('read webhook')).filter(isAbout(webhooks[0] ?? ''))).toMatchObject([
      { by: { kind: 'operator_token' }, source: '127.0.0.1', locationId, outcome: 'done' },
      { locationId },
    ]);
  });

  it('are shown with the names of fields that could not be read', async () => {
    const { locationId, url } = await misconfigured();
    await mend(locationId);
    const body = {
      eventType: 'order.status',
      order: { thirdPartyReference: 'o-1', id: 1.5, status: 'READY', occurredAt: 'soon', reason: null },
    };
    const text = JSON.stringify(body);
    const answer = await stage.post(url, text, signWebhook(RIGHT, text));
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'unmatched' } });
    const { today } = (await operator.get(`/webhooks/${String(answer.body['webhookId'])}`)).body;
    expect(today).toMatchObject({
      events: [{ status: 'ready', serviceOrderId: 'o-1' }],
      unread: ['order.id', 'order.occurredAt'],
    });
  });

  it('are shown with their cause, even if a newer version wrote an unknown cause', async () => {
    const { locationId, webhooks } = await dropped(1);
    const cause = { code: 'of_a_newer_version', with: ['details'] };
    await stage.query('UPDATE webhooks SET cause = $2 WHERE id = $1', [webhooks[0], JSON.stringify(cause)]);
    expect((await operator.get(`/webhooks/${webhooks[0]}`)).body).toMatchObject({ cause });
    expect(await listed(`location=${locationId}`)).toMatchObject([{ cause }]);
  });
});

it('the page of a location counts all its dropped webhooks, also while many locations have some', async () => {
  await stage.addLocation('club-1', { ordersUrl });
  await stage.query(
    `INSERT INTO webhooks (id, day, location_id, integration, received_at, headers, body, events, outcome)
     SELECT gen_random_uuid(), (now() AT TIME ZONE 'UTC')::date, 'club-' || least(nth, 150), 'standard', now(), '{}', '', 0, 'dropped'
     FROM generate_series(1, 250) AS nth`,
  );
  await stage.query(`UPDATE webhooks SET location_id = 'club-1' WHERE location_id = 'club-150'`);
  expect((await operator.get('/locations/club-1')).body['open']).toMatchObject({ dropped: 102 });
  await stage.query(`DELETE FROM webhooks WHERE location_id ~ '^club-\\d+$'`);
});

describe('a replay', () => {
  it('names the webhook by its time and each order by its code, also if the event has only the POS id', async () => {
    const { locationId, url } = await misconfigured();
    await stage.seedOrder({ serviceOrderId: 'by-pos-id', locationId, providerOrderId: 'slip-7' });
    const id = await send(url, { providerOrderId: 'slip-7', status: 'READY' });
    await shift([id], -60);
    await mend(locationId);
    const { receivedAt } = (await operator.get(`/webhooks/${id}`)).body;
    const named = {
      receivedAt,
      events: [{ serviceOrderId: 'by-pos-id', callOutCode: 'K472', providerOrderId: 'slip-7' }],
    };
    expect((await operator.post(`/webhooks/${id}/replay`, { dryRun: true })).body).toMatchObject(named);
    const all = { outcome: 'dropped', location: locationId };
    expect((await operator.post('/webhooks/replay', all)).body).toMatchObject({ replayed: [named] });
  });

  it('that a page shows before it is done names each order by its code', async () => {
    const { locationId, orders, webhooks } = await dropped(1);
    await mend(locationId);
    const { today } = (await operator.get(`/webhooks/${webhooks[0]}`)).body;
    expect(today).toMatchObject({ events: [{ serviceOrderId: orders[0], callOutCode: 'K472' }] });
  });

  it('changes the order once the secret is right, and stores a new webhook and an entry in the audit', async () => {
    const { locationId, orders, webhooks } = await dropped(1);
    const [id, serviceOrderId] = [webhooks[0] ?? '', orders[0] ?? ''];
    expect((await operator.post(`/webhooks/${id}/replay`)).body).toMatchObject({ outcome: 'dropped' });
    await mend(locationId);
    const dry = await operator.post(`/webhooks/${id}/replay`, { dryRun: true });
    expect(dry.body).toMatchObject({ webhookId: null, outcome: 'applied' });
    const openThere = async (): Promise<unknown> => (await operator.get(`/locations/${locationId}`)).body['open'];
    expect(await openThere()).toEqual({
      dropped: 1,
      replayedAt: null,
      unreported: 0,
      unreportedSince: null,
      failing: null,
      held: 0,
    });
    expect(await stage.order(serviceOrderId)).toMatchObject({ status: null });

    const replayed = await operator.post(`/webhooks/${id}/replay`, {});
    expect(replayed.body).toMatchObject({
      replayOf: id,
      outcome: 'applied',
      events: [{ status: 'ready', serviceOrderId, callOutCode: 'K472', outcome: 'applied', conflict: false }],
    });
    expect(await stage.order(serviceOrderId)).toMatchObject({ status: 'ready' });
    expect(await openThere()).toEqual({
      dropped: 0,
      replayedAt: expect.any(String),
      unreported: 0,
      unreportedSince: null,
      failing: null,
      held: 0,
    });
    expect(await stage.query('SELECT FROM outbox WHERE service_order_id = $1', [serviceOrderId])).toHaveLength(1);
    const shown = await operator.get(`/orders/${serviceOrderId}`);
    expect(shown.body).toMatchObject({ webhooks: [{ webhookId: replayed.body['webhookId'], replayOf: id }] });
    expect((await operator.get(`/webhooks/${id}`)).body['replays']).toHaveLength(2);
    const written = [
      { action: 'replay', locationId, outcome: 'done', after: 'dropped' },
      { action: 'read webhook', outcome: 'done' },
      { action: 'replay', by: { name: 'OPERATOR_TOKEN' }, after: 'applied' },
    ];
    expect((await actions('replay')).filter(isAbout(id)).toReversed()).toMatchObject([written[0], written[2]]);
    const again = await operator.get(`/orders/${serviceOrderId}`);
    expect(again.body['actions']).toMatchObject([written[0], written[2], written[1]]);
    expect(again.body['timeline']).toContainEqual(
      expect.objectContaining({
        what: 'action',
        details: expect.objectContaining({ action: 'replay', webhookId: id }),
      }),
    );
    for (const hidden of ['source', 'requestId']) expect(JSON.stringify(again.body['actions'])).not.toContain(hidden);
  });

  it('that covers many webhooks begins with the oldest, and continues when it is sent again', async () => {
    const { locationId, orders, webhooks } = await dropped(5);
    await mend(locationId);
    await stage.query(`UPDATE webhooks SET truncated = true WHERE id = $1`, [webhooks[4]]);
    const body = { outcome: 'dropped', location: locationId, since: new Date(Date.now() - 3_600_000).toISOString() };
    const { body: dry } = await operator.post('/webhooks/replay', { ...body, dryRun: true });
    expect(dry).toMatchObject({ dryRun: true, outcomes: { applied: 4 }, refused: [], left: 0 });
    const first = await operator.post('/webhooks/replay', { ...body, limit: 3 });
    expect(first.body).toMatchObject({ dryRun: false, outcomes: { applied: 3 }, left: 1 });
    expect((first.body['replayed'] as { replayOf: string }[]).map((each) => each.replayOf)).toEqual(
      webhooks.slice(0, 4).toSorted().slice(0, 3),
    );
    expect((await operator.post('/webhooks/replay', body)).body).toMatchObject({ outcomes: { applied: 1 }, left: 0 });
    expect((await operator.post('/webhooks/replay', body)).body).toMatchObject({ outcomes: {}, replayed: [] });
    expect((await operator.post('/webhooks/replay', { ...body, again: true })).body).toMatchObject({
      outcomes: { duplicate: 4 },
    });
    for (const serviceOrderId of orders.slice(0, 4))
      expect(await stage.order(serviceOrderId)).toMatchObject({ status: 'ready' });
    const runs = await actions('replay many', `&location=${locationId}`);
    expect(runs.map(({ subject, after }) => [subject, after])).toEqual([
      [expect.stringMatching(/^dropped, since \S+, again$/), 'duplicate 4'],
      [expect.any(String), 'none'],
      [expect.any(String), 'applied 1'],
      [expect.stringMatching(/^dropped, since \S+$/), 'applied 3'],
    ]);
    // And each of them stands in its order's story.
    for (const [nth, id] of webhooks.slice(0, 4).entries()) {
      const story = (await operator.get(`/orders/${orders[nth]}`)).body['actions'];
      expect(story).toMatchObject(
        ['applied', 'duplicate'].map((after) => ({ action: 'replay', webhookId: id, after })),
      );
    }
  });

  it('that covers many webhooks continues with its cursor after webhooks that are dropped again', async () => {
    const { locationId, webhooks } = await dropped(5);
    const body = { outcome: 'dropped', location: locationId, limit: 2 };
    const listed = webhooks.toSorted();
    for (const dryRun of [true, false]) {
      const reached: string[] = [];
      let cursor: unknown;
      for (let nth = 0; nth < 3; nth += 1) {
        const page = { ...body, dryRun, ...(nth > 0 && { cursor }) };
        const { body: answer } = await operator.post('/webhooks/replay', page);
        expect(answer).toMatchObject({ outcomes: { dropped: nth < 2 ? 2 : 1 }, left: [3, 1, 0][nth] });
        reached.push(...(answer['replayed'] as { replayOf: string }[]).map((each) => each.replayOf));
        cursor = answer['next'];
      }
      expect([reached, cursor]).toEqual([listed, null]);
    }
    const unknown = await operator.post('/webhooks/replay', { ...body, cursor: uuidV7() });
    expect([unknown.status, unknown.text]).toEqual([400, expect.stringContaining('cursor')]);
  });

  it('that covers many webhooks replays no webhooks later than the `until` of its dry run', async () => {
    const { locationId, url } = await misconfigured();
    const first = await send(url, { serviceOrderId: 'nobodys', status: 'READY' });
    const body = { outcome: 'dropped', location: locationId };
    await shift([first], -60);
    const { body: dry } = await operator.post('/webhooks/replay', { ...body, dryRun: true });
    expect(dry['replayed']).toHaveLength(1);
    await shift([await send(url, { serviceOrderId: 'nobodys', status: 'READY' })], 60);
    const { body: answer } = await operator.post('/webhooks/replay', { ...body, until: dry['until'] });
    expect(answer).toMatchObject({ until: dry['until'], replayed: [{ replayOf: first }], left: 0 });
  });

  /** Has a run of many wait for an order's row. */
  const holdRow = (serviceOrderId: string | undefined): ReturnType<typeof holdOpen> =>
    holdOpen(stage.databaseUrl, 'SELECT FROM orders WHERE service_order_id = $1 FOR UPDATE', [serviceOrderId]);
  const waiting = (): Promise<unknown> =>
    until(async () => {
      const [row] = await stage.query(
        `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
      );
      return row?.['pid'];
    });

  it('that covers many webhooks stops when its caller leaves', async () => {
    const { locationId, orders, webhooks } = await dropped(4);
    await mend(locationId);
    const url = await stage.listen();
    const connected = once(stage.app.server, 'connection') as Promise<[Socket]>;
    const caller = new AbortController();
    const second = orders[webhooks.indexOf(webhooks.toSorted()[1] ?? '')];
    const row = await holdRow(second);
    fetch(`${url}/v1/webhooks/replay`, {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ outcome: 'dropped', location: locationId }),
      signal: caller.signal,
    }).catch(() => {});
    const [socket] = await connected;
    await waiting();
    const left = once(socket, 'close');
    caller.abort();
    await left;
    await row.end();
    const run = await until(async () => {
      const [found] = await actions('replay many', `&location=${locationId}`);
      return typeof found?.['outcome'] === 'string' && found;
    });
    expect(run).toMatchObject({ outcome: 'done', after: 'applied 2' });
    expect(await actions('replay', `&location=${locationId}`)).toHaveLength(2);
  });

  it('that covers many webhooks records in the audit how far it got if Postgres goes away', async () => {
    const { locationId, orders } = await dropped(2);
    await mend(locationId);
    const row = await holdRow(orders[1]);
    const answering = operator.post('/webhooks/replay', { outcome: 'dropped', location: locationId });
    await stage.query('SELECT pg_terminate_backend($1)', [await waiting()]);
    expect((await answering).status).toBe(503);
    await row.end();
    expect(await stage.order(orders[0] ?? '')).toMatchObject({ status: 'ready' });
    expect(await actions('replay many', `&location=${locationId}`)).toMatchObject([
      { outcome: 'failed', after: 'applied 1' },
    ]);
  });

  it.each<[string, unknown, string]>([
    ['has neither outcome, since nor oldToken', { location: 'club-1' }, 'outcome, since or oldToken is required'],
    ['is empty', {}, 'outcome, since or oldToken is required'],
    ['is missing', undefined, 'body'],
    ['asks for too many', { outcome: 'dropped', limit: 1001 }, 'limit'],
  ])('that covers many webhooks is answered 400 if its filter %s', async (_what, body, named) => {
    const before = await stage.query('SELECT count(*) FROM webhooks');
    const { status, text } = await operator.post('/webhooks/replay', body);
    expect([status, text]).toEqual([400, expect.stringContaining(named)]);
    expect(await stage.query('SELECT count(*) FROM webhooks')).toEqual(before);
  });
});
