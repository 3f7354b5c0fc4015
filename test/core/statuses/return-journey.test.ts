import { randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { z } from 'zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DropCause } from '../../../src/core/domain/webhook-cause.ts';
import { Poison } from '../../../src/core/domain/errors.ts';
import type { StatusEvent } from '../../../src/core/domain/order.ts';
import type { LiveMessage } from '../../../src/core/domain/live-message.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { publishLive } from '../../../src/core/live/publish-live.ts';
import { parseSettingsKeys, unsealWebhook } from '../../../src/core/locations/settings-key.ts';
import { pauseLocation } from '../../../src/core/kitchens/pause-location.ts';
import { removeLocation } from '../../../src/core/locations/remove-location.ts';
import { endOrders } from '../../../src/core/retention/retention-rules.ts';
import { dropQuota } from '../../../src/core/statuses/drop-quota.ts';
import { UNPROVEN_QUOTA } from '../../../src/core/statuses/store-webhooks.ts';
import { bodyAsItCame } from '../../support/body-as-it-came.ts';
import { UNHURRIED, hurried } from '../../../world/system/fixtures.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { seedOrders } from '../../support/seed-rows.ts';
import { signWebhook } from '../../../world/pos/sign-webhook.ts';
import { post, statusWebhook, type Answer } from '../../../world/system/start-system.ts';
import { untilLocked } from '../../support/until-locked.ts';
import { until } from '../../../world/processes/until.ts';
import { beside, whileLocked } from '../../support/while-locked.ts';

/** A POS whose webhooks are our own events, as they are; and whose translator can be told to fail. */
const verbatim: Provider = {
  integration: 'verbatim',
  settings: z.object({}),
  deduplicates: true,
  createOrder: async () => ({}),
  translateWebhook({ body }) {
    const said = JSON.parse(body.toString()) as StatusEvent[] | { fail: string; cause?: object };
    if (Array.isArray(said)) return said;
    if (said.fail === 'async') return Promise.reject(new Error('later')) as unknown as StatusEvent[];
    if (said.fail === 'poison') throw new Poison('what it quotes holds a \0', { cause: said.cause as DropCause });
    throw new TypeError(said.fail);
  },
};

const MIB = 2 ** 20;
const SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;

let stage: Stage;
/** The stage, and another process. */
let both: Stage[];
let origins: string[];
let url: string;
const logged = (): string[] => both.flatMap((each) => each.logged);
const urlOf = async (locationId: string): Promise<string> => `${origins[0]}${await stage.webhookPath(locationId)}`;

beforeAll(async () => {
  const env = { WEBHOOK_BODY_LIMIT: '100000', PUBLIC_URL: 'https://expediter.test' };
  stage = await startStage({ providers: [verbatim], env });
  both = [stage, await startStage({ providers: [verbatim], env, databaseUrl: stage.databaseUrl })];
  origins = await Promise.all(both.map((each) => each.listen()));
  for (const locationId of ['club-1', 'club-2']) {
    await stage.addLocation(locationId, { ordersUrl: 'http://127.0.0.1:9/orders' });
  }
  for (const locationId of ['signed', 'flooded']) {
    await stage.addLocation(locationId, { ordersUrl: 'http://127.0.0.1:9/orders', secret: SECRET });
  }
  await stage.addLocation('verbatim', {}, 'verbatim');
  url = await urlOf('club-1');
});
afterAll(() => Promise.all(both.map((each) => each.stop())));

async function order(locationId = 'club-1', providerOrderId?: string, fulfillment = 'pickup'): Promise<string> {
  const serviceOrderId = `order-${randomUUID()}`;
  await stage.seedOrder({ serviceOrderId, locationId, fulfillment, ...(providerOrderId && { providerOrderId }) });
  return serviceOrderId;
}

/** Posts a status. @returns what became of it */
async function outcomeOf(about: Parameters<typeof statusWebhook>[0], at = url): Promise<unknown> {
  const { status, body } = await post(at, statusWebhook(about));
  expect(status).toBe(200);
  return body['outcome'];
}

async function webhook(answer: { body: Record<string, unknown> }): Promise<Record<string, unknown> | undefined> {
  const [row] = await stage.query('SELECT * FROM webhooks WHERE id = $1', [answer.body['webhookId']]);
  return row && { ...row, body: bodyAsItCame(row) };
}

const history = (serviceOrderId: string): Promise<Record<string, unknown>[]> =>
  stage.query('SELECT * FROM status_events WHERE service_order_id = $1 ORDER BY event_id', [serviceOrderId]);

/** A placement whose POS id nobody knows yet. */
async function startPlacement(locationId: string): Promise<string> {
  const serviceOrderId = `order-${randomUUID()}`;
  await seedOrders(stage.pool, [serviceOrderId], {
    locationId,
    order: { integration: null, sequence: 1 },
    placement: { deadline_at: 'tomorrow', requested_at: 'now', next_attempt_at: 'infinity' },
  });
  return serviceOrderId;
}

const isAbout =
  (id: string) =>
  ({ serviceOrderId }: LiveMessage): boolean =>
    serviceOrderId === id;
/** Publishes all that is due. @returns the order's messages */
async function published(serviceOrderId: string): Promise<LiveMessage[]> {
  const messages: LiveMessage[] = [];
  const publish = async (message: LiveMessage): Promise<undefined> => void messages.push(message);
  const relay = publishLive({
    pool: stage.pool,
    way: 'topic',
    isOnly: true,
    publish,
    log: stage.app.log,
    observe: () => {},
  });
  while ((await relay.round()) > 0);
  return messages.filter(isAbout(serviceOrderId));
}

/** The token of a webhook's URL as it is, percent-encoded in two ways, and in a URL within a URL. */
function tokenWrittenIn(url: string): string[] {
  const token = new URL(url).searchParams.get('token') ?? '';
  const encoded = token.replaceAll('_', '%5f').replaceAll('-', '%2D');
  const all = token.replaceAll(/./g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  return [token, encoded, encoded.replaceAll('%', '%25'), all];
}

describe('the outcome of a webhook', () => {
  it('is `applied` for an event that moves its order', async () => {
    const serviceOrderId = await order();
    const answer = await post(url, statusWebhook({ serviceOrderId, status: 'ready' }));
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'applied' } });
    expect(Object.keys(answer.body).sort()).toEqual(['outcome', 'webhookId']);
    expect(await stage.order(serviceOrderId)).toMatchObject({ status: 'ready', rank: 40, sequence: 3 });
    expect(await webhook(answer)).toMatchObject({
      outcome: 'applied',
      integration: 'standard',
      location_id: 'club-1',
      events: 1,
    });
    expect(await history(serviceOrderId)).toMatchObject([{ outcome: 'applied', sequence: 3, native_status: 'ready' }]);
  });

  it('is `duplicate` for the same status again', async () => {
    const serviceOrderId = await order();
    await post(url, statusWebhook({ serviceOrderId, status: 'READY' }));
    expect(await outcomeOf({ serviceOrderId, status: 'Ready' })).toBe('duplicate');
    expect(await stage.order(serviceOrderId)).toMatchObject({ sequence: 3 });
    expect(await history(serviceOrderId)).toMatchObject([
      { outcome: 'applied' },
      { outcome: 'duplicate', sequence: null },
    ]);
  });

  it('is `stale` for a late event that does not move its order', async () => {
    const serviceOrderId = await order();
    await post(url, statusWebhook({ serviceOrderId, status: 'READY' }));
    expect(await outcomeOf({ serviceOrderId, status: 'RECEIVED' })).toBe('stale');
    expect(await stage.order(serviceOrderId)).toMatchObject({ status: 'ready', sequence: 3 });
  });

  it.each([
    ['another event type', { eventType: 'menu.changed', order: { id: 'x', status: 'READY' } }],
    ['an unknown status', statusWebhook({ serviceOrderId: 'x', status: 'FLAMBEED' })],
  ])('is `ignored` for %s', async (_what, body) => {
    const answer = await post(url, body);
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'ignored' } });
    expect(await webhook(answer)).toMatchObject({ outcome: 'ignored', events: 0, sealed: null });
  });

  it.each([
    ['no JSON', '{"eventType":'],
    ['an empty body', ''],
    ['a NUL in an id', statusWebhook({ serviceOrderId: 'a\0b', status: 'READY' })],
    ['a lone surrogate in an id', '{"eventType":"order.status","order":{"id":"\\ud800","status":"READY"}}'],
    ['an id of 10 kB', statusWebhook({ serviceOrderId: 'x'.repeat(10_000), status: 'READY' })],
    ['no id at all', { eventType: 'order.status', order: { status: 'READY' } }],
  ])('is `dropped` for %s, which is stored whole with the reason', async (_what, body) => {
    const answer = await post(url, body, {
      authorization: 'Basic c2VjcmV0',
      cookie: 'session=secret',
      'proxy-authorization': 'Basic c2VjcmV0',
      'x-api-key': 'secret',
      'x-vendor': 'v1',
      'user-agent': `till (${tokenWrittenIn(url).join(' ')})`,
      'x-request-id': 'r-1',
      'webhook-id': 'msg_1',
    });
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'dropped' } });
    const kept = await webhook(answer);
    expect(kept).toMatchObject({ outcome: 'dropped', reason: expect.stringMatching(/./), truncated: false });
    expect(String(kept?.['body'])).toBe(typeof body === 'string' ? body : JSON.stringify(body));
    expect(kept?.['headers']).toEqual({
      'content-length': String(Buffer.byteLength(String(kept?.['body']))),
      'content-type': 'application/json',
      host: new URL(url).host,
      'user-agent': 'till ([secret] [secret] [secret] [secret])',
      'webhook-id': 'msg_1',
      'x-request-id': 'r-1',
    });
    expect(kept?.['sealed']).toMatch(/^eyJ[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+$/);
    expect(JSON.stringify(kept)).not.toContain(new URL(url).searchParams.get('token'));
  });

  it('a body with our token in it is stored, and the token is not readable in any spelling', async () => {
    const [token = ''] = tokenWrittenIn(url);
    const run = token.split(/[^A-Za-z0-9]/).toSorted((a, b) => b.length - a.length)[0] ?? token;
    for (const written of [...tokenWrittenIn(url).slice(0, 3), token.replace('_', '\\u005f')]) {
      const body = `{"eventType":"callback","at":"https://expediter.test/webhook/standard/open?token=${written}"}`;
      const answer = await post(url, body);
      expect(answer.body['outcome']).toBe('ignored');
      const kept = await webhook(answer);
      expect(kept).toMatchObject({ body: Buffer.alloc(0), truncated: false, outcome: 'ignored' });
      const place = { locationId: String(kept?.['location_id']), webhookId: String(kept?.['id']) };
      const keys = parseSettingsKeys(stage.env['SETTINGS_KEY'] ?? '');
      expect(await unsealWebhook(keys, place, String(kept?.['sealed']))).toEqual({
        body: Buffer.from(body).toString('base64'),
      });
      expect(JSON.stringify(kept)).not.toContain(run);
    }
  });

  it('is `dropped` for a wrong or missing signature, and `applied` for a right one', async () => {
    const signedUrl = await urlOf('signed');
    const serviceOrderId = await order('signed');
    const body = JSON.stringify(statusWebhook({ serviceOrderId, status: 'READY' }));
    expect((await post(signedUrl, body)).body['outcome']).toBe('dropped');
    const headers = signWebhook(SECRET, body);
    const forged = await post(signedUrl, body.replace('READY', 'FAILED'), headers);
    expect(forged.body['outcome']).toBe('dropped');
    expect(await webhook(forged)).toMatchObject({
      reason: expect.stringContaining('not authentic'),
      cause: { code: 'signature_wrong', header: 'webhook-signature' },
    });
    expect((await post(signedUrl, body, headers)).body['outcome']).toBe('applied');
    expect(await stage.order(serviceOrderId)).toMatchObject({ status: 'ready' });
  });

  it('is `dropped` for a body over the limit, of which only the beginning is stored', async () => {
    const answer = await post(url, 'x'.repeat(100_001));
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'dropped' } });
    const kept = await webhook(answer);
    expect(kept).toMatchObject({
      truncated: true,
      reason: expect.stringContaining('over 100000 bytes'),
      cause: { code: 'too_large', limit: 100_000 },
    });
    expect(kept?.['body']).toHaveLength(65_536);
    expect((await post(url, 'x'.repeat(100_000))).body['outcome']).toBe('dropped');
    const readable = JSON.stringify(statusWebhook({ serviceOrderId: await order(), status: 'READY' }));
    expect((await post(url, readable + ' '.repeat(90_000))).body['outcome']).toBe('applied');
  });

  it('is `unmatched` for an event about an unknown order', async () => {
    const answer = await post(url, statusWebhook({ serviceOrderId: 'nobody', status: 'READY' }));
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'unmatched' } });
    expect(await webhook(answer)).toMatchObject({ outcome: 'unmatched' });
  });

  it.each([
    'application/json',
    'text/plain',
    'application/x-www-form-urlencoded',
    'nonsense',
    'a/b;;;=',
    ';',
    'application/json; charset=utf-99',
  ])('a webhook is read whatever its Content-Type: %s', async (type) => {
    const serviceOrderId = await order();
    const answer = await post(url, statusWebhook({ serviceOrderId, status: 'READY' }), { 'content-type': type });
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'applied' } });
    expect((await webhook(answer))?.['headers']).toMatchObject({ 'content-type': type });
  });
});

describe('a flood of webhooks without a valid signature', () => {
  it('is stored whole up to a daily quota of the location; after that, only beginnings are stored, and then webhooks are only counted', async () => {
    // A mebibyte of the day's quota is left.
    await stage.query(
      `INSERT INTO dropped_bytes (location_id, day, bytes) VALUES ('flooded', (now() AT TIME ZONE 'UTC')::date, $1)`,
      [UNPROVEN_QUOTA - MIB],
    );
    const each = await urlOf('flooded');
    const urls = origins.map((base) => each.replace(origins[0] ?? '', base));
    const send = (body: string, headers = {}): ReturnType<typeof post>[] => urls.map((at) => post(at, body, headers));
    const answers = [];
    for (let nth = 0; nth < 30; nth += 1) answers.push(...(await Promise.all(send('x'.repeat(99_000)))));
    // Nobody verifies what is over the limit.
    answers.push(...(await Promise.all(send('x'.repeat(100_001)))));
    expect(new Set(answers.map(({ status, body }) => `${status} ${String(body['outcome'])}`))).toEqual(
      new Set(['200 dropped']),
    );
    const [{ whole, beginnings, bytes } = {}] = await stage.query(
      `SELECT count(*) FILTER (WHERE NOT truncated)::int AS whole, count(*) FILTER (WHERE truncated)::int AS beginnings,
              sum(coalesce(zstd_of, octet_length(body)) + octet_length(sealed) + octet_length(headers::text))::int AS bytes
       FROM webhooks WHERE location_id = 'flooded'`,
    );
    expect(Number(whole)).toBeGreaterThanOrEqual(5);
    expect(Number(beginnings)).toBeGreaterThanOrEqual(5);
    expect(Number(bytes)).toBeLessThan(2 * MIB);
    const notStored = answers.filter(({ body }) => body['webhookId'] === null).length;
    expect(Number(whole) + Number(beginnings) + notStored).toBe(62);
    expect(notStored).toBeGreaterThan(20);
    expect(
      logged()
        .join('')
        .match(/exceed the quota of their location/g),
    ).toHaveLength(2);

    const serviceOrderId = await order('flooded');
    const body = JSON.stringify(statusWebhook({ serviceOrderId, status: 'READY' }));
    const [applied, again] = await Promise.all(send(body, signWebhook(SECRET, body)));
    expect(new Set([applied?.body['outcome'], again?.body['outcome']])).toEqual(new Set(['applied', 'duplicate']));
    const unreadable = '{"eventType":"order.status"}';
    const [signed] = await Promise.all(send(unreadable, signWebhook(SECRET, unreadable)));
    expect(await webhook(signed ?? { body: {} })).toMatchObject({ outcome: 'dropped', truncated: false });

    const about = { table: 'dropped_bytes', bytes: UNPROVEN_QUOTA, onSpent: () => {} } as const;
    const cost = { whole: 100, beginning: 100 };
    let passedMs = 0;
    const another = dropQuota(stage.pool, { ...about, now: () => new Date(Date.now() + passedMs) });
    expect(await another.take('flooded', { whole: MIB, beginning: MIB }), 'in a process that starts now').toBe(
      'nothing',
    );
    expect(await another.take('signed', cost), 'at another location').toBe('whole');
    const counted = async (): Promise<unknown> =>
      (await stage.query(`SELECT not_stored FROM dropped_bytes WHERE location_id = 'flooded'`))[0]?.['not_stored'];
    await Promise.all([another.write(), ...both.map(({ writeNotStored }) => writeNotStored())]);
    expect(Number(await counted())).toBe(notStored + 1);
    await pauseLocation(stage.pool, 'flooded');
    await stage.query(`UPDATE orders SET ended_at = now() WHERE location_id = 'flooded'`);
    expect(await removeLocation(stage.pool, 'flooded')).toHaveProperty('tokens');
    await stage.addLocation('flooded', { ordersUrl: 'http://127.0.0.1:9/orders', secret: SECRET });
    passedMs = 61_000;
    expect(await another.take('flooded', cost), 'once it was removed and made again').toBe('whole');
    const tomorrow = dropQuota(stage.pool, { ...about, now: () => new Date(Date.now() + 86_400_000) });
    expect(await tomorrow.take('flooded', cost), 'the next day').toBe('whole');
    expect(await counted()).toBe('0');
  });
});

describe('several events in one webhook', () => {
  const event = (serviceOrderId: string, status: string, more: object = {}): object => ({
    serviceOrderId,
    status,
    nativeStatus: status,
    ...more,
  });

  it('are applied in sequence, and the webhook has the best of their outcomes', async () => {
    const many = await urlOf('verbatim');
    const [a, b] = [await order('verbatim'), await order('verbatim')];
    const three = [event('nobody', 'ready'), event(a, 'received'), event(a, 'ready')];
    expect((await post(many, three)).body['outcome']).toBe('applied');
    expect(await stage.order(a)).toMatchObject({ status: 'ready', sequence: 4 });
    expect((await post(many, three)).body['outcome']).toBe('duplicate');
    expect((await post(many, [event('nobody', 'ready'), event(a, 'received')])).body['outcome']).toBe('stale');
    expect((await post(many, [event('nobody', 'ready')])).body['outcome']).toBe('unmatched');
    expect((await post(many, [])).body['outcome']).toBe('ignored');
    const all = ['received', 'in_progress', 'ready', 'en_route', 'completed'];
    const fifty = Array.from({ length: 50 }, (_, i) => event(b, all[i % 5] ?? ''));
    const answer = await post(many, fifty);
    expect(answer.body['outcome']).toBe('applied');
    expect((await history(b)).map((row) => row['sequence']).filter(Boolean)).toEqual([3, 4, 5, 6, 7]);
    expect(await history(b)).toHaveLength(50);
    expect(await webhook(answer)).toMatchObject({ events: 50, outcome: 'applied' });
  });

  it('are all dropped if they are more than 50', async () => {
    const a = await order('verbatim');
    const answer = await post(
      await urlOf('verbatim'),
      Array.from({ length: 51 }, () => event(a, 'ready')),
    );
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'dropped' } });
    expect(await webhook(answer)).toMatchObject({
      reason: expect.stringContaining('51 events, at most 50'),
      cause: { code: 'too_many_events', count: 51, limit: 50 },
    });
    expect(await stage.order(a)).toMatchObject({ status: null });
  });

  it.each(['poison', 'async', 'a bug'])(
    'are dropped if the translator fails (%s), and the process continues',
    async (fail) => {
      const answer = await post(await urlOf('verbatim'), { fail });
      expect(answer).toMatchObject({ status: 200, body: { outcome: 'dropped' } });
      expect((await webhook(answer))?.['reason']).not.toContain(fail === 'a bug' ? 'a bug' : '\0');
    },
  );

  it.each([
    ['none', undefined],
    ['an unknown code', { code: 'moon_not_full' }],
    ['a cause without its details', { code: 'signature_wrong' }],
    ['a cause that Postgres cannot store', { code: 'signature_wrong', header: 'a\0b' }],
    ['a cause that is too long', { code: 'signature_wrong', header: 'x'.repeat(10_000) }],
  ])("are dropped with the general cause if the provider's cause is not valid (%s)", async (_what, cause) => {
    const answer = await post(await urlOf('verbatim'), { fail: 'poison', cause });
    expect(await webhook(answer)).toMatchObject({ outcome: 'dropped', cause: { code: 'unreadable' } });
  });

  it("are dropped with the provider's cause, without its unknown details, if the cause is in the list", async () => {
    const cause = { code: 'names_no_order', fields: ['a', 'b'] };
    const answer = await post(await urlOf('verbatim'), {
      fail: 'poison',
      cause: { ...cause, member: 'Ada' },
    });
    expect((await webhook(answer))?.['cause']).toEqual(cause);
  });

  it.each([
    '2026-11-21T18:30:00+16:00',
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:59-10:00',
    `2026-11-21T18:30:00.${'1'.repeat(200)}Z`,
  ])('lose a time that Postgres cannot store, and are not dropped: %s', async (occurredAt) => {
    const answer = await post(await urlOf('verbatim'), [event('x', 'ready', { occurredAt })]);
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'unmatched' } });
  });

  const [before, end, after] = ['18:29', '18:30', '18:31'].map((time) => `2026-01-31T${time}:00Z`);
  it.each([
    ['FAILED', 'IN_PROGRESS', 'later', 'a conflict', after],
    ['FAILED', 'READY', 'later', 'a conflict', after],
    ['FAILED', 'COMPLETED', 'later', 'a conflict', after],
    ['CANCELLED', 'IN_PROGRESS', 'later', 'a conflict', after],
    ['CANCELLED', 'EN_ROUTE', 'later', 'a conflict', after],
    // A till closes the check of a cancelled order.
    ['CANCELLED', 'COMPLETED', 'later', 'no conflict', after],
    ['FAILED', 'RECEIVED', 'later', 'no conflict', after],
    // It was only late.
    ['FAILED', 'READY', 'earlier', 'no conflict', before],
    ['CANCELLED', 'READY', 'at the same time', 'no conflict', end],
    ['FAILED', 'READY', 'without a time', 'no conflict', undefined],
  ])('have $3 if $0 comes before $1, which happened $2', async (last, status, _when, result, occurredAt) => {
    const conflict = result === 'a conflict';
    for (const together of [false, true]) {
      const serviceOrderId = await order('verbatim');
      const events = [
        event(serviceOrderId, last === 'FAILED' ? 'failed' : 'cancelled', { occurredAt: end }),
        event(serviceOrderId, status.toLowerCase(), { occurredAt }),
      ];
      const target = await urlOf('verbatim');
      if (together) await post(target, events);
      else for (const each of events) await post(target, [each]);
      expect(await history(serviceOrderId)).toMatchObject([{ conflict: false }, { conflict, outcome: 'stale' }]);
    }
  });

  it('end an order with its last status, also if it had ended with another one before', async () => {
    const serviceOrderId = await order('verbatim');
    await post(await urlOf('verbatim'), [event(serviceOrderId, 'completed')]);
    await stage.query(`UPDATE orders SET ended_at = ended_at - interval '17 min' WHERE service_order_id = $1`, [
      serviceOrderId,
    ]);
    const endedAt = async (): Promise<number> => Number((await stage.order(serviceOrderId))?.['ended_at']);
    const completedAt = await endedAt();
    await post(await urlOf('verbatim'), [event(serviceOrderId, 'completed')]);
    expect(await endedAt()).toBe(completedAt);
    await post(await urlOf('verbatim'), [event(serviceOrderId, 'cancelled')]);
    expect((await endedAt()) - completedAt).toBeGreaterThanOrEqual(17 * 60_000);
  });

  it('are recorded with their best outcome and their conflict if they were parked together', async () => {
    const many = await urlOf('verbatim');
    const serviceOrderId = await startPlacement('verbatim');
    const providerOrderId = `pos-${randomUUID()}`;
    const waiting = (status: string): object => ({ providerOrderId, status, nativeStatus: status });
    const parked = await post(many, [waiting('received'), waiting('cancelled')]);
    expect(parked.body['outcome']).toBe('parked');
    await post(many, [event(serviceOrderId, 'completed')]);
    const told = stage.logged.filter((line) => line.includes('conflict')).length;
    await post(many, [event(serviceOrderId, 'received', { providerOrderId })]);
    await until(async () => (await stage.order(serviceOrderId))?.['status'] === 'cancelled');
    expect(await webhook(parked)).toMatchObject({ outcome: 'applied' });
    await until(() => stage.logged.filter((line) => line.includes('conflict')).length > told);
  });
});

describe('an id that only the POS knows', () => {
  it('is unmatched if no placement can still get it', async () => {
    expect(await outcomeOf({ providerOrderId: 'till-sale', status: 'READY' }, await urlOf('club-2'))).toBe('unmatched');
  });

  it('is parked after a placement has started, and applied once an event names both ids', async () => {
    const serviceOrderId = await startPlacement('club-1');
    const providerOrderId = `pos-${randomUUID()}`;
    const parked = await post(url, statusWebhook({ providerOrderId, status: 'READY' }));
    expect(parked).toMatchObject({ status: 200, body: { outcome: 'parked' } });
    expect(await webhook(parked)).toMatchObject({ outcome: 'parked' });
    expect(await outcomeOf({ serviceOrderId, providerOrderId, status: 'RECEIVED' })).toBe('applied');
    await until(async () => (await stage.order(serviceOrderId))?.['status'] === 'ready');
    expect(await webhook(parked)).toMatchObject({ outcome: 'applied' });
    expect(await stage.query('SELECT FROM parked_events WHERE provider_order_id = $1', [providerOrderId])).toEqual([]);
  });

  it('is not parked for a placement that was started more than an hour ago', async () => {
    await stage.addLocation('quiet', { ordersUrl: 'http://127.0.0.1:9/orders' });
    const serviceOrderId = await startPlacement('quiet');
    await stage.query(`UPDATE placements SET requested_at = now() - interval '3601 s' WHERE service_order_id = $1`, [
      serviceOrderId,
    ]);
    const quiet = await urlOf('quiet');
    expect(await outcomeOf({ providerOrderId: 'p', status: 'READY' }, quiet)).toBe('unmatched');
    await stage.query('UPDATE placements SET requested_at = now() WHERE service_order_id = $1', [serviceOrderId]);
    expect(await outcomeOf({ providerOrderId: 'p', status: 'READY' }, quiet)).toBe('parked');
  });

  it('is applied later if it turns out to be ours, although its event was unmatched', async () => {
    const location = `late-${randomUUID()}`;
    await stage.addLocation(location, { ordersUrl: 'http://127.0.0.1:9/orders' });
    const locationUrl = await urlOf(location);
    expect(await outcomeOf({ providerOrderId: 'pos-9', status: 'READY' }, locationUrl)).toBe('unmatched');
    const serviceOrderId = await order(location);
    await post(locationUrl, statusWebhook({ serviceOrderId, providerOrderId: 'pos-9', status: 'RECEIVED' }));
    await until(async () => (await stage.order(serviceOrderId))?.['status'] === 'ready');
  });

  it('is stored when it comes with a duplicate or a stale event', async () => {
    const serviceOrderId = await order();
    const providerOrderId = `pos-${randomUUID()}`;
    await post(url, statusWebhook({ serviceOrderId, status: 'IN_PROGRESS' }));
    expect(await outcomeOf({ serviceOrderId, providerOrderId, status: 'RECEIVED', reason: 'late' })).toBe('stale');
    expect(await outcomeOf({ providerOrderId, status: 'READY' })).toBe('applied');
    expect(await stage.order(serviceOrderId)).toMatchObject({ status: 'ready', provider_order_id: providerOrderId });
  });

  it('is not stored for our order if it belongs to another order, and a conflict is logged', async () => {
    const [mine, other] = [await order('club-1'), await order('club-1', 'pos-other')];
    const told = stage.logged.filter((line) => line.includes('conflict')).length;
    await post(url, statusWebhook({ serviceOrderId: mine, providerOrderId: 'pos-other', status: 'READY' }));
    expect(await stage.order(mine)).toMatchObject({ status: 'ready', provider_order_id: null });
    expect(await stage.order(other)).toMatchObject({ status: null });
    expect(await history(mine)).toMatchObject([{ conflict: true }]);
    expect(stage.logged.filter((line) => line.includes('conflict')).length).toBe(told + 1);
    const [message, ...others] = await published(mine);
    expect(others).toEqual([]);
    expect(message).not.toHaveProperty('providerOrderId');
    await post(url, statusWebhook({ serviceOrderId: mine, providerOrderId: 'pos-mine', status: 'COMPLETED' }));
    expect(await stage.order(mine)).toMatchObject({ provider_order_id: 'pos-mine' });
  });

  it('never moves an order if the event has an unknown order id', async () => {
    const other = await order('club-1', `known-${randomUUID()}`);
    const providerOrderId = String((await stage.order(other))?.['provider_order_id']);
    expect(await outcomeOf({ serviceOrderId: 'somebody', providerOrderId, status: 'CANCELLED' })).toBe('unmatched');
    expect(await stage.order(other)).toMatchObject({ status: null });
    const parked = 'SELECT FROM parked_events WHERE provider_order_id = $1';
    expect(await stage.query(parked, [providerOrderId]), 'what could move one later').toEqual([]);
  });
});

describe('the life of an order', () => {
  it.each([
    ['pickup', ['confirmed', 'preparing', 'ready_for_pickup', 'ready_for_pickup', 'picked_up', 'failed', 'cancelled']],
    [
      'delivery',
      ['confirmed', 'preparing', 'ready_for_delivery', 'out_for_delivery', 'delivered', 'failed', 'cancelled'],
    ],
  ])('a %s order shows the member the state of each status', async (fulfillment, states) => {
    const serviceOrderId = await order('club-1', undefined, fulfillment);
    for (const status of ['RECEIVED', 'IN_PROGRESS', 'READY', 'EN_ROUTE', 'COMPLETED', 'FAILED', 'CANCELLED']) {
      expect(await outcomeOf({ serviceOrderId, status })).toBe('applied');
    }
    const live = await published(serviceOrderId);
    expect(live.map((message) => message.memberState)).toEqual(states);
    expect(live.map((message) => message.sequence)).toEqual([3, 4, 5, 6, 7, 8, 9]);
  });

  it('a cancelled order is not completed by a till that closes the check', async () => {
    const serviceOrderId = await order();
    await post(url, statusWebhook({ serviceOrderId, status: 'CANCELLED', reason: 'kitchen closed' }));
    expect(await outcomeOf({ serviceOrderId, status: 'COMPLETED' })).toBe('stale');
    const now = await stage.order(serviceOrderId);
    expect(now).toMatchObject({ status: 'cancelled', reason: 'kitchen closed' });
    expect(now?.['ended_at']).toBeInstanceOf(Date);
  });

  it("a completed order whose check is reopened does not move, and the event is in the order's history", async () => {
    const serviceOrderId = await order();
    await post(url, statusWebhook({ serviceOrderId, status: 'COMPLETED' }));
    expect(await outcomeOf({ serviceOrderId, status: 'IN_PROGRESS' })).toBe('stale');
    expect(await stage.order(serviceOrderId)).toMatchObject({ status: 'completed', sequence: 3 });
    expect(await history(serviceOrderId)).toMatchObject([
      { outcome: 'applied' },
      { outcome: 'stale', conflict: false },
    ]);
  });

  it.each(['FAILED', 'CANCELLED'])('%s after completed is a conflict', async (status) => {
    const serviceOrderId = await order();
    await post(url, statusWebhook({ serviceOrderId, status: 'COMPLETED' }));
    await post(url, statusWebhook({ serviceOrderId, status }));
    expect(await history(serviceOrderId)).toMatchObject([{ conflict: false }, { conflict: true, outcome: 'applied' }]);
  });

  it('an order ends after a day without news, and no message is published', async () => {
    const [silent, wanted, heard, waiting] = [
      await order(),
      await order(),
      await order(),
      await startPlacement('club-1'),
    ];
    await stage.query(
      `UPDATE orders SET created_at = now() - interval '2 d', updated_at = now() - interval '2 d'
       WHERE service_order_id = ANY ($1)`,
      [[silent, wanted, heard, waiting]],
    );
    await stage.query(`UPDATE orders SET requested_at = now() WHERE service_order_id = $1`, [wanted]);
    await stage.query(
      `INSERT INTO status_events (service_order_id, status, native_status, outcome) VALUES ($1, 'received', 'x', 'stale')`,
      [heard],
    );
    await endOrders(stage.pool);
    const ended = async (id: string): Promise<boolean> => (await stage.order(id))?.['ended_at'] !== null;
    expect(await Promise.all([silent, wanted, heard, waiting].map(ended))).toEqual([true, false, false, false]);
    expect(await published(silent)).toEqual([]);
  });
});

describe('many webhooks at once', () => {
  it('move the order only once if they are 20 copies of one webhook at two processes', async () => {
    const serviceOrderId = await order();
    const body = statusWebhook({ serviceOrderId, status: 'READY' });
    const second = url.replace(origins[0] ?? '', origins[1] ?? '');
    // Held until all of them are under way, so that every process has looked before any has written.
    const { answers } = await whileLocked(stage.pool, serviceOrderId, async () => {
      for (const each of both) each.logged.length = 0;
      const sent = Promise.all(Array.from({ length: 20 }, (_, i) => post(i % 2 ? url : second, body)));
      await untilLocked(stage, 2);
      return { answers: sent };
    });
    const outcomes = (await answers).map((answer) => answer.body['outcome']);
    expect(outcomes.filter((outcome) => outcome === 'applied')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(19);
    // They wait for each other at the order's row; otherwise the outbox would refuse all but the first.
    expect(logged().filter((line) => line.includes('refuses a batch'))).toEqual([]);
    expect((await published(serviceOrderId)).map(({ sequence }) => sequence)).toEqual([3]);
  });

  it('updates of orders stay on their page (HOT): no index holds what an event changes', async () => {
    // Spread over pages, as a day's open orders are among all others.
    const ids = Array.from({ length: 600 }, (_, i) => `hot-${String(i).padStart(4, '0')}`);
    await seedOrders(stage.pool, ids, { order: { rank: 10, sequence: 2 } });
    const orders = ids.filter((_, i) => i % 24 === 0);
    const counted = async (): Promise<{ all: number; hot: number }> => {
      const [row] = await stage.query(
        `SELECT n_tup_upd::int AS all, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables WHERE relname = 'orders'`,
      );
      return row as { all: number; hot: number };
    };
    // A connection tells what it counted when it ends; while it is idle, after ten seconds.
    const endConnections = (): Promise<unknown> =>
      stage.query(
        `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'expediter' AND state = 'idle'`,
      );
    await endConnections();
    const before = await counted();
    for (const status of ['RECEIVED', 'IN_PROGRESS', 'READY', 'EN_ROUTE']) {
      await Promise.all(orders.map((serviceOrderId) => post(url, statusWebhook({ serviceOrderId, status }))));
    }
    await endConnections();
    const after = await until(async () => {
      const now = await counted();
      return now.all - before.all >= 100 && now;
    });
    expect((after.hot - before.hot) / (after.all - before.all)).toBeGreaterThan(0.8);
  });

  it('do not fail if Postgres refuses another webhook in their batch', async () => {
    const orders = await Promise.all(Array.from({ length: 20 }, () => order()));
    const answers = await Promise.all([
      ...orders.map((serviceOrderId) => post(url, statusWebhook({ serviceOrderId, status: 'READY' }))),
      post(url, statusWebhook({ serviceOrderId: 'x\0', status: 'READY' })),
      post(url, '\0\ufffd'),
    ]);
    expect(answers.map((answer) => answer.body['outcome'])).toEqual([
      ...orders.map(() => 'applied'),
      'dropped',
      'dropped',
    ]);
  });

  it("are stored even if the day's partition is missing: it is created", async () => {
    await stage.query(`DO $$ DECLARE p text; BEGIN
      FOR p IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'webhooks'::regclass
      LOOP EXECUTE 'DROP TABLE ' || p; END LOOP; END $$`);
    const answer = await post(url, statusWebhook({ serviceOrderId: await order(), status: 'READY' }));
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'applied' } });
  });
});

describe('a request without access', () => {
  const unauthorized = async (target: string): Promise<void> => {
    const answer = await post(target, statusWebhook({ serviceOrderId: 'x', status: 'READY' }));
    expect(answer).toMatchObject({ status: 401, body: { error: 'unauthorized' } });
  };
  const refused = async (target: string): Promise<void> => {
    const kept = (await stage.query('SELECT count(*)::int AS n FROM webhooks'))[0]?.['n'];
    await unauthorized(target);
    expect((await stage.query('SELECT count(*)::int AS n FROM webhooks'))[0]?.['n']).toBe(kept);
  };
  const path = (integration: string, location: string, query: string): string =>
    `${origins[0]}/webhook/${integration}/${location}${query}`;
  const token = (): string => new URL(url).searchParams.get('token') ?? '';

  it.each<[string, () => string]>([
    ['no token', () => path('standard', 'club-1', '')],
    ['no location', () => `${origins[0]}/webhook/standard?token=${token()}`],
    ['no integration', () => `${origins[0]}/webhook?token=${token()}`],
    ['a segment too many', () => path('standard', 'club-1/orders', `?token=${token()}`)],
    ['an empty token', () => path('standard', 'club-1', '?token=')],
    ['a made-up token', () => path('standard', 'club-1', '?token=abc')],
    ['a token with a NUL', () => path('standard', 'club-1', '?token=%00')],
    ['a long token', () => path('standard', 'club-1', `?token=${'x'.repeat(12_000)}`)],
    ['a token given twice', () => path('standard', 'club-1', `?token=${token()}&token=${token()}`)],
    ['another location', () => path('standard', 'club-2', `?token=${token()}`)],
    ['no such location', () => path('standard', 'nowhere', `?token=${token()}`)],
    ['another integration', () => path('square', 'club-1', `?token=${token()}`)],
    ['a property name of JavaScript', () => path('constructor', 'club-1', `?token=${token()}`)],
    ['__proto__', () => path('__proto__', 'club-1', `?token=${token()}`)],
    ['a path with ..', () => path('..%2f..', 'club-1', `?token=${token()}`)],
    ['a path that cannot be decoded', () => path('%zz', 'club-1', `?token=${token()}`)],
    ['a long location', () => path('standard', 'x'.repeat(9_000), `?token=${token()}`)],
  ])('is answered with the same 401: %s', async (_what, target) => refused(target()));

  it('cannot move or read an order of another location with the token of one location', async () => {
    const foreign = await order('club-2', 'pos-of-club-2');
    const own = await order('club-1');
    for (const ids of [
      { serviceOrderId: foreign },
      { serviceOrderId: foreign, providerOrderId: 'pos-of-club-2' },
      { providerOrderId: 'pos-of-club-2' },
    ]) {
      const answer = await post(url, statusWebhook({ ...ids, status: 'CANCELLED' }));
      expect(['unmatched', 'parked']).toContain(answer.body['outcome']);
      expect(JSON.stringify(answer.body)).not.toContain(foreign);
    }
    expect(await stage.order(foreign)).toMatchObject({ status: null, sequence: 2 });
    // In one batch with an event of the right location, too.
    const foreignUrl = await urlOf('club-2');
    const mixed = await Promise.all([
      post(url, statusWebhook({ serviceOrderId: foreign, status: 'FAILED' })),
      post(foreignUrl, statusWebhook({ serviceOrderId: foreign, status: 'RECEIVED' })),
      post(url, statusWebhook({ serviceOrderId: own, status: 'RECEIVED' })),
    ]);
    expect(mixed.map((answer) => answer.body['outcome'])).toEqual(['unmatched', 'applied', 'applied']);
    expect(await stage.order(foreign)).toMatchObject({ status: 'received' });
    expect(await history(foreign)).toHaveLength(1);
  });

  it('is refused before its body is read', async () => {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest(
        path('standard', 'club-1', '?token=no'),
        { method: 'POST', headers: { 'content-length': '1000000' } },
        (response) => {
          response.resume();
          resolve(response.statusCode);
          request.destroy();
        },
      );
      request.on('error', reject);
      request.flushHeaders();
    });
    expect(status).toBe(401);
  });

  it('leaves no token, query or secret in the log', () => {
    const log = stage.logged.join('');
    expect(log).not.toMatch(/token=/);
    expect(log).not.toContain(token());
    expect(log).toContain('webhook');
  });
});

describe('a webhook that cannot be stored now', () => {
  it('is answered 500 with Retry-After if its location sends a flood, and other locations are not affected', async () => {
    const small = await startStage({ limits: { ...UNHURRIED, perSecond: 1 } });
    await small.addLocation('flood', { ordersUrl: 'http://127.0.0.1:9/orders', secret: SECRET });
    await small.addLocation('quiet', { ordersUrl: 'http://127.0.0.1:9/orders' });
    const there = await small.listen();
    const [flood, quiet] = [
      `${there}${await small.webhookPath('flood')}`,
      `${there}${await small.webhookPath('quiet')}`,
    ];
    const ignored = { eventType: 'menu.changed' };
    expect((await post(flood, ignored)).body['outcome']).toBe('dropped');
    // It has to share only while another has sent something within a second.
    const refused = await until(async () => {
      expect((await post(quiet, ignored)).status).toBe(200);
      const flooded = await Promise.all(Array.from({ length: 10 }, () => post(flood, ignored)));
      const those = flooded.filter(({ status }) => status === 500);
      return those.length > 0 && those;
    });
    expect(refused.every(({ headers }) => headers.get('retry-after') === '1')).toBe(true);
    // A flood that had to connect again each time would cost more than one that is accepted.
    expect(refused.every(({ headers }) => headers.get('connection') !== 'close')).toBe(true);
    expect((await post(quiet, ignored)).status).toBe(200);
    await small.stop();
  });

  const withoutTable = (table: string, send: () => Promise<Answer>): Promise<Answer> =>
    beside(stage.pool, `LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`, () => hurried(send));

  it('is answered 500 with Retry-After while Postgres does not answer, and can be sent again', async () => {
    const serviceOrderId = await order();
    const body = statusWebhook({ serviceOrderId, status: 'READY' });
    const answer = await withoutTable('orders', () => post(url, body));
    expect(answer.status).toBe(500);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect((await post(url, body)).status).toBe(200);
    expect(await stage.order(serviceOrderId)).toMatchObject({ status: 'ready' });
  });

  it('is answered 500 while its token cannot be checked', async () => {
    const fresh = await urlOf('club-1');
    const answer = await withoutTable('webhook_tokens', () => post(fresh, { eventType: 'ping' }));
    expect(answer.status).toBe(500);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect((await post(fresh, { eventType: 'ping' })).status).toBe(200);
  });
});
