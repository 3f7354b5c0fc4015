import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rankOf } from '../../../src/core/domain/lifecycle.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { uuidV7 } from '../../../src/core/domain/uuid-v7.ts';
import { readLive } from '../../../src/core/live/read-live.ts';
import { asService } from '../../../world/system/as-service.ts';
import { sealWebhook } from '../../../src/core/locations/settings-key.ts';
import { createDatabase } from '../../../world/postgres/create-database.ts';
import { runCli } from '../../support/run-cli.ts';
import type { Ended } from '../../../world/processes/run-program.ts';
import { signWebhook } from '../../../world/pos/sign-webhook.ts';
import { post, startSystem, statusWebhook, type System } from '../../../world/system/start-system.ts';
import { until } from '../../../world/processes/until.ts';
import { whileLocked } from '../../support/while-locked.ts';

const secretOf = (byte: number): string => `whsec_${Buffer.alloc(24, byte).toString('base64')}`;
const [RIGHT, WRONG] = [secretOf(1), secretOf(2)];
const ORDERS_URL = 'http://127.0.0.1:9/orders';
const PUBLIC_URL = 'https://expediter.test';

/** Nothing runs automatically, so that a test can compare everything in the database. */
const STEPPED = ['placements', 'refreshes', 'cancellations', 'relay'] as const;

/** A POS that signs with all that a replay has to bring back: URL, `Authorization`, cookie. */
const WITNESS = `
  const seen = ({ url, headers }) => [url.split('token=')[0], headers.authorization, headers.cookie].join(' ').trimEnd();
  export default {
    integration: 'witness',
    settings: { safeParse: (data) => ({ success: true, data }) },
    deduplicates: true,
    createOrder: async () => ({}),
    translateWebhook(webhook, settings) {
      if (!webhook.verified && webhook.headers['x-api-key'] !== settings.key) throw new Error('not the key');
      if (!webhook.verified && (seen(webhook) !== settings.sees || !/token=exw_[\\w-]{49}$/.test(webhook.url))) {
        throw new Error('not what was agreed');
      }
      if (settings.reads === 'badly') throw new Error('a bug');
      return settings.reads === 'nothing' ? [] : [].concat(JSON.parse(webhook.body));
    },
  };`;

type Replayed = {
  webhookId: string | null;
  replayOf: string;
  outcome: string;
  reason: string | null;
  events: unknown[];
};
type Many = {
  outcomes: Record<string, number>;
  replayed: Replayed[];
  refused: { webhookId: string; refused: string }[];
};
type Listed = { webhookId: string; outcome: string; replayOf: string | null; serviceOrderId: string | null };

let folder: string;
let system: System;
let env: Record<string, string>;
/** All that any command said. */
const said: string[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'expediter-'));
  const witness = join(folder, 'witness.mjs');
  await writeFile(witness, WITNESS);
  const module = (await import(/* @vite-ignore */ witness)) as { default: Provider };
  system = await startSystem({
    stepped: STEPPED,
    providers: [module.default],
    env: { PUBLIC_URL, WEBHOOK_BODY_LIMIT: '100000' },
  });
  env = { ...system.env, PROVIDER_MODULES: witness };
});
afterAll(async () => {
  await system?.stop();
  await rm(folder, { recursive: true });
});

async function cli(args: readonly string[], input = '', more: Record<string, string> = {}): Promise<Ended> {
  // A replay of many ends now by Postgres's clock, and the service's clock may be some milliseconds ahead.
  const ahead = `SELECT FROM webhooks WHERE received_at BETWEEN now() AND now() + interval '1 min'`;
  await until(async () => (await system.query(ahead)).length === 0);
  const ended = await runCli({ ...env, ...more }, args, input);
  said.push(ended.out, ended.error);
  return ended;
}

async function json<Value>(...args: string[]): Promise<Value> {
  const { code, out, error } = await cli([...args, '--json']);
  expect({ code, error }).toEqual({ code: 0, error: '' });
  return JSON.parse(out) as Value;
}

const replay = (id: unknown, ...more: string[]): Promise<Replayed> =>
  json<Replayed>('webhook', 'replay', String(id), ...more);
const replayAll = (...filters: string[]): Promise<Many> => json<Many>('webhook', 'replay', ...filters);

async function put(locationId: string, settings: object, integration = 'standard'): Promise<void> {
  const args = ['location', 'put', '--location', locationId, '--integration', integration, '--settings', '-'];
  expect(await cli(args, JSON.stringify(settings))).toMatchObject({ code: 0 });
}

/** A location whose POS signs with RIGHT, configured with another secret. */
async function misconfigured(): Promise<{ locationId: string; url: string }> {
  const locationId = `club-${randomUUID()}`;
  await system.addLocation(locationId, { ordersUrl: ORDERS_URL, secret: WRONG });
  return { locationId, url: await system.webhookUrl(locationId) };
}

const mend = (locationId: string): Promise<void> =>
  system.addLocation(locationId, { ordersUrl: ORDERS_URL, secret: RIGHT });

async function open(): Promise<{ locationId: string; url: string }> {
  const locationId = `open-${randomUUID()}`;
  await system.addLocation(locationId, { ordersUrl: ORDERS_URL });
  return { locationId, url: await system.webhookUrl(locationId) };
}

async function order(locationId: string): Promise<string> {
  const serviceOrderId = `order-${randomUUID()}`;
  await system.seedOrder({ serviceOrderId, locationId });
  return serviceOrderId;
}

/** Posts a signed status, as the POS of a `standard` location does. @returns the webhook's id */
async function send(
  url: string,
  about: Parameters<typeof statusWebhook>[0],
  expected: string,
  { at = new Date(), ...headers }: { at?: Date } & Record<string, unknown> = {},
): Promise<string> {
  const body = JSON.stringify(statusWebhook(about));
  const answer = await post(url, body, {
    ...signWebhook(RIGHT, body, { at }),
    ...(headers as Record<string, string>),
  });
  expect(answer).toMatchObject({ status: 200, body: { outcome: expected } });
  return String(answer.body['webhookId']);
}

const kept = async (id: unknown): Promise<Record<string, unknown>> =>
  (await system.query('SELECT * FROM webhooks WHERE id = $1', [id]))[0] ?? {};

/** What the member was told, after the relay has published all. */
async function told(serviceOrderId: string): Promise<string[]> {
  await system.finish('relay');
  return system.live(serviceOrderId).map((message) => message.memberState);
}

/** Every row of every table and all that is in it. */
async function everything(): Promise<string> {
  const tables = await system.query(`SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition
                                     AND relnamespace = 'expediter'::regnamespace ORDER BY 1`);
  const rows = await Promise.all(
    tables.map(({ relname }) => system.query(`SELECT t.*, '${String(relname)}' AS "table" FROM ${String(relname)} t`)),
  );
  return JSON.stringify(
    rows.map((each) => each.map((row) => JSON.stringify({ ...row, last_used_at: null })).toSorted()),
  );
}

const waitingForLock = (): Promise<Record<string, unknown>[]> =>
  system.query(
    `SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ 'WITH (event|o) AS '`,
  );

const MISSING = '019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33';

describe('a webhook that was dropped for a wrong secret', () => {
  it('moves its order when it is replayed with the right secret, and the status is published', async () => {
    const { locationId, url } = await misconfigured();
    const serviceOrderId = await order(locationId);
    const dropped = await send(url, { serviceOrderId, status: 'READY' }, 'dropped');
    const before = await kept(dropped);

    await put(locationId, { ordersUrl: ORDERS_URL, secret: RIGHT });
    const replayed = await replay(dropped);
    expect(replayed).toMatchObject({
      replayOf: dropped,
      locationId,
      outcome: 'applied',
      reason: null,
      dryRun: false,
      events: [{ status: 'ready', serviceOrderId, providerOrderId: null, outcome: 'applied', conflict: false }],
    });
    expect(await system.order(serviceOrderId)).toMatchObject({ status: 'ready', sequence: 3 });
    expect(await told(serviceOrderId)).toEqual(['ready_for_pickup']);

    expect(await kept(dropped)).toEqual(before);
    expect(await kept(replayed.webhookId)).toMatchObject({
      replay_of: dropped,
      first_received_at: before['received_at'],
      headers: before['headers'],
      body: before['body'],
      sealed: null,
      outcome: 'applied',
      events: 1,
    });
    expect(((await kept(replayed.webhookId))['received_at'] as Date).getTime()).toBeGreaterThan(
      (before['received_at'] as Date).getTime(),
    );
    expect(
      await system.query('SELECT outcome, sequence FROM status_events WHERE webhook_id = $1', [replayed.webhookId]),
    ).toEqual([{ outcome: 'applied', sequence: 3 }]);
  });

  it('has `firstReceivedAt` in its live message after a replay, unlike a new webhook', async () => {
    const { locationId, url } = await misconfigured();
    const serviceOrderId = await order(locationId);
    const body = JSON.stringify(statusWebhook({ serviceOrderId, status: 'RECEIVED' }));
    expect((await post(url, body, signWebhook(WRONG, body))).body['outcome']).toBe('applied');
    const dropped = await send(url, { serviceOrderId, status: 'READY' }, 'dropped');
    await mend(locationId);
    expect(await replay(dropped)).toMatchObject({ outcome: 'applied' });
    await system.finish('relay');
    const [fresh, late] = system.live(serviceOrderId);
    expect(fresh).toMatchObject({ sequence: 3 });
    expect(fresh).not.toHaveProperty('firstReceivedAt');
    expect(late).toMatchObject({ sequence: 4, firstReceivedAt: expect.any(String) });
    expect(new Date(late?.firstReceivedAt ?? 0)).toEqual((await kept(dropped))['received_at']);

    // As who follows the order in the console is told, out of what is kept of published messages.
    const feed = await readLive(system.pool, new Map([[serviceOrderId, 0]]));
    expect(feed.get(serviceOrderId)?.messages).toEqual([fresh, late]);
  });

  it('is judged by the time of its arrival, not of its replay', async () => {
    const { locationId, url } = await misconfigured();
    const [serviceOrderId, other] = [await order(locationId), await order(locationId)];
    const anHourAgo = new Date(Date.now() - 3_600_000);
    // Not before midnight: another day is another partition.
    const at = new Date(Math.max(anHourAgo.getTime(), new Date().setUTCHours(0, 0, 0, 0)));
    const dropped = await send(url, { serviceOrderId, status: 'READY' }, 'dropped', { at });
    // The same, an hour too old when it came.
    const late = await send(url, { serviceOrderId: other, status: 'READY' }, 'dropped', { at: anHourAgo });
    await system.query('UPDATE webhooks SET received_at = $2 WHERE id = $1', [dropped, at]);

    const between = await replay(dropped);
    expect(between).toMatchObject({ outcome: 'dropped', reason: expect.stringContaining('no signature') });
    await mend(locationId);
    expect(await replay(between.webhookId)).toMatchObject({ outcome: 'applied' });
    const many = await cli(['webhook', 'replay', '--outcome', 'dropped', '--location', locationId, '--json']);
    const old = {
      replayOf: late,
      outcome: 'dropped',
      reason: expect.stringContaining('is right, but webhook-timestamp is over 300 s old'),
    };
    expect((JSON.parse(many.out) as Many).replayed).toMatchObject([old]);
    // A person who chose it knows better whether it is a copy.
    expect(await replay(late)).toMatchObject({ outcome: 'applied' });
    const forged = await send(url, { serviceOrderId: other, status: 'COMPLETED' }, 'dropped', {
      at: anHourAgo,
      'webhook-signature': 'v1,Zm9yZ2Vk',
    });
    expect(await replay(forged)).toMatchObject({ outcome: 'dropped' });
  });

  it('is verified again at its replay, so that a forged webhook stays dropped', async () => {
    const { locationId, url } = await misconfigured();
    await mend(locationId);
    const serviceOrderId = await order(locationId);
    const forged = await send(url, { serviceOrderId, status: 'CANCELLED' }, 'dropped', {
      'webhook-signature': 'v1,Zm9yZ2Vk',
    });
    expect(await replay(forged)).toMatchObject({ outcome: 'dropped' });
    expect((await replayAll('--outcome', 'dropped', '--location', locationId)).outcomes).toEqual({ dropped: 1 });
    expect(await system.order(serviceOrderId)).toMatchObject({ status: null });
  });

  it('is replayed with its URL and all its headers, and no output shows them', async () => {
    const locationId = 'witness 1/é';
    await system.addLocation(locationId, { sees: 'nothing' }, 'witness');
    const { token } = await json<{ token: string }>('token', 'issue', '--location', locationId);
    said.length = 0;
    const query = `a=%20b&token=${token}`;
    const path = '/webhook/witness/witness%201%2F%C3%A9';
    const serviceOrderId = await order(locationId);
    const answer = await post(
      `${system.urls[0]}${path}?${query}`,
      [{ status: 'ready', nativeStatus: 'R', serviceOrderId }],
      {
        authorization: 'Basic aHVudGVyMg==',
        cookie: 'session=hunter3',
        'x-api-key': 'hunter4',
        'x-original-url': `${path}?token=${token}`,
      },
    );
    expect(answer.body['outcome']).toBe('dropped');
    const id = String(answer.body['webhookId']);

    const again = await replay(id);
    expect(again).toMatchObject({ outcome: 'dropped' });
    const sees = `${PUBLIC_URL}${path}?a=%20b& Basic aHVudGVyMg== session=hunter3`;
    await system.addLocation(locationId, { sees, key: 'hunter4' }, 'witness');
    for (const args of [
      ['show', id],
      ['show', id, '--json'],
      ['list', '--location', locationId],
      ['list', '--json'],
      ['replay', id, '--dry-run'],
      ['replay', '--outcome', 'dropped', '--location', locationId, '--dry-run'],
    ]) {
      expect(await cli(['webhook', ...args])).toMatchObject({ code: 0 });
    }
    expect(await replay(again.webhookId)).toMatchObject({ outcome: 'applied' });
    for (const words of [said.join(''), system.logged.join(''), await everything()]) {
      for (const secret of [token, 'aHVudGVyMg', 'hunter3', 'hunter4', 'a=%20b']) expect(words).not.toContain(secret);
    }
  });

  it('is verified with the URL as its sender encoded it', async () => {
    await system.addLocation('club-1', { sees: 'nothing' }, 'witness');
    const path = '/webhook/witness/club%2D1';
    const url = (await system.webhookUrl('club-1')).replace('/webhook/witness/club-1', path);
    const serviceOrderId = await order('club-1');
    const answer = await post(url, { status: 'ready', nativeStatus: 'R', serviceOrderId });
    expect(answer.body['outcome']).toBe('dropped');
    await system.addLocation('club-1', { sees: `${PUBLIC_URL}${path}?` }, 'witness');
    expect(await replay(answer.body['webhookId'])).toMatchObject({ outcome: 'applied' });
  });

  it('cannot be replayed with another SETTINGS_KEY, and the error names the missing key', async () => {
    const { locationId, url } = await misconfigured();
    const dropped = await send(url, { serviceOrderId: 'any', status: 'READY' }, 'dropped');
    await mend(locationId);
    const lost = new Map([['lost', Buffer.alloc(32, 8)]]);
    const sealed = await sealWebhook(lost, { locationId, webhookId: dropped }, { target: '/webhook' });
    await system.query('UPDATE webhooks SET sealed = $2 WHERE id = $1', [dropped, sealed]);
    expect(await cli(['webhook', 'replay', dropped])).toEqual({
      code: 1,
      out: '',
      error: expect.stringMatching(/^error: .* cannot be replayed: .*SETTINGS_KEY has no key with id "lost"\n$/),
    });
  });
});

describe('a webhook that was verified at its arrival', () => {
  it('is replayed as a duplicate, and nothing is published', async () => {
    const { locationId, url } = await misconfigured();
    await mend(locationId);
    const serviceOrderId = await order(locationId);
    const applied = await send(url, { serviceOrderId, status: 'READY' }, 'applied');
    expect(await told(serviceOrderId)).toHaveLength(1);
    // What it was verified with may have changed since.
    await system.addLocation(locationId, { ordersUrl: ORDERS_URL, secret: WRONG });
    expect(await replay(applied)).toMatchObject({ outcome: 'duplicate', events: [{ outcome: 'duplicate' }] });
    expect(await system.order(serviceOrderId)).toMatchObject({ status: 'ready', sequence: 3 });
    expect(await system.query('SELECT FROM outbox WHERE service_order_id = $1', [serviceOrderId])).toEqual([]);
    expect(await told(serviceOrderId)).toEqual(['ready_for_pickup']);
  });

  it('is read by the current translator, so that an event that was ignored before now moves the order', async () => {
    const locationId = 'reads';
    const sees = `${PUBLIC_URL}/webhook/witness/reads?`;
    const reads = (what: string): Promise<void> => system.addLocation(locationId, { sees, reads: what }, 'witness');
    await reads('nothing');
    const serviceOrderId = await order(locationId);
    const event = { status: 'ready', nativeStatus: 'R', serviceOrderId };
    const answer = await post(await system.webhookUrl(locationId), event);
    expect(answer.body['outcome']).toBe('ignored');
    const filters = ['--outcome', 'ignored', '--location', locationId];
    expect((await replayAll(...filters)).outcomes).toEqual({ ignored: 1 });
    await reads('badly');
    expect((await replayAll(...filters)).outcomes).toEqual({ dropped: 1 });
    await reads('well');
    expect((await replayAll(...filters)).outcomes).toEqual({ applied: 1 });
    expect((await replayAll(...filters)).outcomes).toEqual({});
    expect(await system.order(serviceOrderId)).toMatchObject({ status: 'ready' });
  });

  it('is not verified again, even if Postgres refused it or a replay could not read it', async () => {
    const locationId = 'had-verified';
    const sees = `${PUBLIC_URL}/webhook/witness/${locationId}? Basic aHVudGVyMg== session=hunter3`;
    const reads = (what: string): Promise<void> => system.addLocation(locationId, { sees, reads: what }, 'witness');
    await reads('well');
    const serviceOrderId = await order(locationId);
    const event = { status: 'ready', nativeStatus: 'refused', serviceOrderId };
    const headers = { authorization: 'Basic aHVudGVyMg==', cookie: 'session=hunter3' };
    await system.query(`ALTER TABLE status_events ADD CONSTRAINT picky CHECK (native_status <> 'refused')`);
    const answer = await post(await system.webhookUrl(locationId), event, headers);
    await system.query('ALTER TABLE status_events DROP CONSTRAINT picky');
    expect(answer.body['outcome']).toBe('dropped');
    const reason = 'Postgres refused a value in it (23514)';
    expect(await kept(answer.body['webhookId'])).toMatchObject({ reason, sealed: null });

    await reads('badly');
    const unread = await replay(answer.body['webhookId']);
    expect(unread).toMatchObject({ outcome: 'dropped', reason: expect.stringContaining('translator failed') });
    await reads('well');
    expect(await replay(unread.webhookId)).toMatchObject({ outcome: 'applied' });
    expect(await replay(answer.body['webhookId'])).toMatchObject({ outcome: 'duplicate' });
  });

  it('applies the events that waited for its POS id, even if no service is running', async () => {
    const alone = { DATABASE_URL: asService(await createDatabase()) };
    const settings = JSON.stringify({ ordersUrl: ORDERS_URL, secret: RIGHT });
    const location = ['location', 'put', '--location', 'club', '--integration', 'standard', '--settings', '-'];
    expect(await cli(location, settings, alone)).toMatchObject({ code: 0 });
    const client = new pg.Client(alone.DATABASE_URL);
    await client.connect();
    try {
      const id = uuidV7();
      const body = statusWebhook({ serviceOrderId: 'alone', providerOrderId: 'slip', status: 'RECEIVED' });
      await client.query(
        `WITH d AS (
           INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, body, events, outcome)
           VALUES ((now() AT TIME ZONE 'UTC')::date, 'club', $1, 'standard', now(), '{"host": "x"}', $2, 0, 'ignored')
         ), e AS (
           INSERT INTO parked_events (location_id, integration, provider_order_id, webhook_day, webhook_id,
                                      rank, native_status)
           VALUES ('club', 'standard', 'slip', now()::date, gen_random_uuid(), 40, 'READY')
         )
         INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, sequence)
         VALUES ('alone', 'K472', 'club', 'standard', 'pickup', 1)`,
        [id, Buffer.from(JSON.stringify(body))],
      );
      const { out } = await cli(['webhook', 'replay', id, '--json'], '', alone);
      expect(JSON.parse(out)).toMatchObject({ outcome: 'applied', redriven: 1 });
      const { rows } = await client.query('SELECT rank, provider_order_id FROM orders');
      expect(rows).toEqual([{ rank: rankOf('ready'), provider_order_id: 'slip' }]);
    } finally {
      await client.end();
    }
  });
});

describe('a replay is refused', () => {
  const refused = async (id: string, why: RegExp, cause: object): Promise<void> => {
    for (const more of [[], ['--dry-run']]) {
      const { code, out, error } = await cli(['webhook', 'replay', id, ...more]);
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(error).toMatch(why);
      expect(error).toMatch(/^error: [^\n]+\n$/);
    }
    expect(await system.query('SELECT FROM webhooks WHERE replay_of = $1', [id])).toEqual([]);
    expect(await cli(['webhook', 'show', id])).toMatchObject({
      code: 0,
      out: expect.stringContaining('is not possible: '),
    });
    const { out } = await cli(['webhook', 'show', id, '--json']);
    expect(JSON.parse(out)).toMatchObject({ today: { refused: expect.stringMatching(why), cause } });
  };

  it('if only the beginning of the webhook is stored', async () => {
    const { locationId, url } = await open();
    const answer = await post(url, 'x'.repeat(100_001));
    expect(answer.body['outcome']).toBe('dropped');
    await refused(String(answer.body['webhookId']), /only its beginning is stored/, { code: 'only_beginning_stored' });
    expect(await replayAll('--outcome', 'dropped', '--location', locationId)).toMatchObject({
      replayed: [],
      refused: [],
    });
  });

  it("if the webhook's location is removed, has moved to another integration, or has unusable settings", async () => {
    const { locationId, url } = await open();
    const id = await send(url, { serviceOrderId: await order(locationId), status: 'READY' }, 'applied');
    await system.query(`UPDATE locations SET settings = 'no JWE' WHERE location_id = $1`, [locationId]);
    await refused(id, /settings cannot be decrypted/, { code: 'settings_sealed', keyId: '' });
    await system.addLocation(locationId, { sees: '' }, 'witness');
    await refused(id, /arrived through "standard", but its location now uses "witness"/, {
      code: 'other_integration',
      integration: 'witness',
    });
    await system.query('DELETE FROM locations WHERE location_id = $1', [locationId]);
    await refused(id, /its location no longer exists/, { code: 'no_location' });
  });

  it("if the webhook's body was erased", async () => {
    const { locationId, url } = await open();
    const id = await send(url, { serviceOrderId: await order(locationId), status: 'READY' }, 'applied');
    await system.query(`UPDATE webhooks SET body = '', headers = '{}', reason = NULL WHERE id = $1`, [id]);
    await refused(id, /erased/, { code: 'erased' });
    expect(await replayAll('--outcome', 'applied', '--location', locationId)).toMatchObject({
      replayed: [],
      refused: [],
    });
  });

  it.each([
    ['no webhook named', ['replay'], /Say which/],
    ['only a location', ['replay', '--location', 'club-1'], /Say which/],
    ['an id and a filter', ['replay', MISSING, '--outcome', 'dropped'], /either/],
    ['an id and --again', ['replay', MISSING, '--again'], /either/],
    ['an unknown outcome', ['list', '--outcome', 'lost'], /Allowed choices/],
    ['an invalid time', ['list', '--since', 'yesterday'], /3d/],
    ['an invalid limit', ['list', '--limit', '0'], /1 to 1000/],
  ])('with exit code 2: %s', async (_what, args, problem) => {
    expect(await cli(['webhook', ...args])).toEqual({ code: 2, out: '', error: expect.stringMatching(problem) });
  });
});

it('a replay moves no order of another location', async () => {
  const { locationId, url } = await misconfigured();
  const foreign = await order((await open()).locationId);
  const dropped = await send(url, { serviceOrderId: foreign, status: 'CANCELLED' }, 'dropped');
  await mend(locationId);
  expect(await replay(dropped)).toMatchObject({ outcome: 'unmatched', events: [{ outcome: 'unmatched' }] });
  expect(await system.order(foreign)).toMatchObject({ status: null, sequence: 2 });
});

describe('a dry run', () => {
  it('shows the outcome of one webhook or of all matches, and changes no table', async () => {
    const { locationId, url } = await misconfigured();
    const [a, b] = [await order(locationId), await order(locationId)];
    const first = await send(url, { serviceOrderId: a, status: 'READY' }, 'dropped');
    const second = await send(url, { serviceOrderId: b, providerOrderId: 'pos-b', status: 'FAILED' }, 'dropped');
    const filters = ['--outcome', 'dropped', '--location', locationId];
    const wrong = await replay(first, '--dry-run');
    expect(wrong).toMatchObject({ outcome: 'dropped', webhookId: null, dryRun: true });
    await mend(locationId);

    const before = await everything();
    expect(await replay(first, '--dry-run')).toMatchObject({
      webhookId: null,
      replayOf: first,
      outcome: 'applied',
      events: [{ status: 'ready', serviceOrderId: a, outcome: 'applied' }],
    });
    expect(await replayAll(...filters, '--dry-run')).toMatchObject({
      dryRun: true,
      outcomes: { applied: 2 },
      replayed: [
        { replayOf: first, webhookId: null },
        { replayOf: second, webhookId: null },
      ],
    });
    expect(await cli(['webhook', 'replay', second, '--dry-run'])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^would be +applied\n/),
    });
    expect(await everything()).toBe(before);

    expect((await replayAll(...filters)).outcomes).toEqual({ applied: 2 });
  });
});

describe('a replay of all matches', () => {
  it('begins with the oldest webhook, and leaves out webhooks that an earlier replay applied, unless --again is given', async () => {
    const { locationId, url } = await misconfigured();
    const elsewhere = await misconfigured();
    const serviceOrderId = await order(locationId);
    const statuses = ['RECEIVED', 'IN_PROGRESS', 'READY', 'COMPLETED'];
    const dropped: string[] = [];
    for (const status of statuses) dropped.push(await send(url, { serviceOrderId, status }, 'dropped'));
    await send(elsewhere.url, { serviceOrderId: 'nobody', status: 'READY' }, 'dropped');
    const filters = ['--outcome', 'dropped', '--since', '1h', '--location', locationId, '--integration', 'standard'];
    expect((await replayAll(...filters)).outcomes).toEqual({ dropped: 4 });

    await mend(locationId);
    const { replayed, outcomes } = await replayAll(...filters);
    expect(outcomes).toEqual({ applied: 4 });
    expect(replayed.map((each) => each.replayOf)).toEqual(dropped);
    expect(await told(serviceOrderId)).toEqual(['confirmed', 'preparing', 'ready_for_pickup', 'picked_up']);
    expect(await kept(replayed[0]?.webhookId)).toMatchObject({ replay_of: dropped[0], outcome: 'applied' });

    expect(await cli(['webhook', 'replay', ...filters])).toMatchObject({ code: 0, out: 'Nothing to replay.\n' });
    const listed = await json<{ replayed: string | null }[]>('webhook', 'list', ...filters);
    expect(listed.map((each) => each.replayed)).toEqual([...statuses, ...statuses].map(() => 'applied'));
    expect((await replayAll(...filters, '--again')).outcomes).toEqual({ duplicate: 1, stale: 3 });
    expect(await replayAll('--since', '2020-01-01', '--until', '1h', '--location', locationId)).toMatchObject({
      replayed: [],
    });
    expect(await replayAll('--since', '1h', '--location', locationId, '--integration', 'witness')).toMatchObject({
      replayed: [],
    });
    expect(await told(serviceOrderId)).toHaveLength(4);
    expect(
      await system.query('SELECT FROM webhooks WHERE replay_of IS NOT NULL AND location_id = $1', [
        elsewhere.locationId,
      ]),
    ).toEqual([]);
  });

  it('continues after a webhook that cannot be replayed, and exits with 1', async () => {
    const { locationId, url } = await misconfigured();
    const serviceOrderId = await order(locationId);
    const bad = await send(url, { serviceOrderId, status: 'RECEIVED' }, 'dropped');
    await system.query(`UPDATE webhooks SET sealed = 'spoilt' WHERE id = $1`, [bad]);
    await send(url, { serviceOrderId, status: 'READY' }, 'dropped');
    await mend(locationId);
    const { code, out } = await cli(['webhook', 'replay', '--outcome', 'dropped', '--location', locationId, '--json']);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      outcomes: { applied: 1 },
      refused: [
        {
          webhookId: bad,
          refused: expect.stringContaining('cannot be decrypted'),
          cause: { code: 'credentials_sealed', keyId: '' },
        },
      ],
    });
    expect(await system.order(serviceOrderId)).toMatchObject({ status: 'ready' });
    const words = await cli(['webhook', 'replay', '--outcome', 'dropped', '--location', locationId, '--again']);
    expect(words).toMatchObject({ code: 1, out: expect.stringMatching(/\n1 duplicate, 1 not replayable\n$/) });
  });

  it('continues after a webhook whose order is locked for long', async () => {
    const { locationId, url } = await misconfigured();
    const [locked, free] = [await order(locationId), await order(locationId)];
    await send(url, { serviceOrderId: locked, status: 'READY' }, 'dropped');
    await send(url, { serviceOrderId: free, status: 'READY' }, 'dropped');
    await mend(locationId);
    const ended = await whileLocked(system.pool, locked, () =>
      cli(['webhook', 'replay', '--outcome', 'dropped', '--location', locationId, '--json']),
    );
    expect(ended.code).toBe(1);
    expect(JSON.parse(ended.out)).toMatchObject({
      outcomes: { applied: 1 },
      refused: [
        {
          refused: 'Postgres could not process it (55P03); try again',
          cause: { code: 'postgres_gave_up', sqlstate: '55P03' },
        },
      ],
    });
  });

  it('covers only webhooks that came before the command began, however many come after', async () => {
    const { locationId, url } = await misconfigured();
    const serviceOrderId = await order(locationId);
    const first = await send(url, { serviceOrderId, status: 'READY' }, 'dropped');
    await system.query(
      `INSERT INTO webhooks
       SELECT d.day, d.location_id, more.id, d.integration, d.received_at, d.headers, 'spoilt', d.body, d.truncated,
              d.events, d.outcome, d.reason
       FROM webhooks d, unnest($2::uuid[]) AS more(id) WHERE d.id = $1`,
      [first, Array.from({ length: 200 }, () => uuidV7())],
    );
    await mend(locationId);
    const ended = await whileLocked(system.pool, serviceOrderId, async () => {
      const run = cli(['webhook', 'replay', '--outcome', 'dropped', '--location', locationId, '--json']);
      await until(async () => (await waitingForLock()).length === 1);
      const forged = { 'webhook-signature': 'v1,Zm9yZ2Vk' };
      await send(url, { serviceOrderId, status: 'READY' }, 'dropped', forged);
      return { run };
    });
    const { outcomes, refused } = JSON.parse((await ended.run).out) as Many;
    expect([outcomes, refused.length]).toEqual([{ applied: 1 }, 200]);
  });

  it('stops when Postgres is away, prints what was done, and does the rest when the command is repeated', async () => {
    const { locationId, url } = await misconfigured();
    const filters = ['webhook', 'replay', '--outcome', 'dropped', '--location', locationId, '--json'];
    const [first, second] = [await order(locationId), await order(locationId)];
    for (const serviceOrderId of [first, second]) await send(url, { serviceOrderId, status: 'READY' }, 'dropped');
    await mend(locationId);
    const { code, out, error } = await whileLocked(system.pool, second, async () => {
      const ended = cli(filters);
      const [waiting] = await until(async () => {
        const all = await waitingForLock();
        return all.length === 1 && all;
      });
      await system.query('SELECT pg_terminate_backend($1)', [waiting?.['pid']]);
      return ended;
    });
    expect({ code, error }).toEqual({
      code: 1,
      error: expect.stringMatching(/^error: It stopped before the end\. Repeat/),
    });
    expect(JSON.parse(out)).toMatchObject({ outcomes: { applied: 1 }, refused: [], stopped: expect.any(String) });
    expect(JSON.parse((await cli(filters)).out)).toMatchObject({ outcomes: { applied: 1 }, refused: [] });
    for (const id of [first, second]) expect(await told(id)).toEqual(['ready_for_pickup']);
  });
});

describe('webhook list', () => {
  it('names the order of each webhook, also if the webhook has only the POS id', async () => {
    const { locationId, url } = await open();
    const ours = await order(locationId);
    const other = await order(locationId);
    await Promise.all(
      [other, ours].map((serviceOrderId) =>
        post(url, statusWebhook({ serviceOrderId, providerOrderId: `pos-${serviceOrderId}`, status: 'RECEIVED' })),
      ),
    );
    const answers = [
      await post(url, statusWebhook({ providerOrderId: `pos-${ours}`, status: 'READY' })),
      await post(url, statusWebhook({ serviceOrderId: 'nobody', status: 'READY' })),
    ];
    const ids = answers.map(({ body }) => String(body['webhookId']));
    const rows = await json<Listed[]>('webhook', 'list', '--location', locationId);
    const orderOf = (id: string | undefined) => rows.find(({ webhookId }) => webhookId === id)?.serviceOrderId;
    expect(ids.map(orderOf)).toEqual([ours, null]);
    const named = rows.map(({ serviceOrderId }) => serviceOrderId);
    expect([ours, other, null].map((id) => named.filter((each) => each === id).length)).toEqual([2, 1, 1]);
    expect(await json('webhook', 'show', String(ids[0]))).toMatchObject({ serviceOrderId: ours, callOutCode: 'K472' });
  });

  it('prints all matches page by page, newest first, without their contents', async () => {
    const { locationId, url } = await open();
    const serviceOrderId = await order(locationId);
    const ids: string[] = [];
    for (const reason of ['late', 'Ada Lovelace', 'x', 'y', 'z']) {
      const answer = await post(url, statusWebhook({ serviceOrderId, status: 'READY', reason }));
      ids.push(String(answer.body['webhookId']));
    }
    const list = (...args: string[]): Promise<Listed[]> => json<Listed[]>('webhook', 'list', ...args);
    const first = await list('--location', locationId, '--limit', '2');
    expect(first.map((row) => row.webhookId)).toEqual([ids[4], ids[3]]);
    const rest = await list('--location', locationId, '--after', String(ids[3]));
    expect(rest.map((row) => row.webhookId)).toEqual([ids[2], ids[1], ids[0]]);
    expect(await list('--order', serviceOrderId)).toHaveLength(5);
    expect(await list('--order', serviceOrderId, '--outcome', 'applied')).toMatchObject([{ webhookId: ids[0] }]);
    expect(await list('--location', locationId, '--outcome', 'dropped')).toEqual([]);
    expect(await list('--location', locationId, '--until', '1h')).toEqual([]);
    expect(await list('--location', locationId, '--integration', 'square')).toEqual([]);
    expect((await list('--since', '1h', '--limit', '1000')).map((row) => row.webhookId)).toEqual(
      expect.arrayContaining(ids),
    );
    expect(first[0]).toMatchObject({ serviceOrderId, callOutCode: 'K472' });
    expect(Object.keys(first[0] ?? {}).toSorted()).toEqual(
      [
        'callOutCode',
        'serviceOrderId',
        'polled',
        'bytes',
        'cause',
        'webhookId',
        'events',
        'integration',
        'locationId',
        'outcome',
        'reason',
        'receivedAt',
        'replayOf',
        'replayed',
        'truncated',
      ].toSorted(),
    );
    const words = await cli(['webhook', 'list', '--location', locationId, '--limit', '2']);
    expect(words.out).toMatch(new RegExp(`^webhook +received .*\n\nThere may be more: --after ${ids[3]}\n$`, 's'));
    expect(words.out).not.toContain('Lovelace');
    expect(await cli(['webhook', 'list', '--order', 'nowhere'])).toMatchObject({ code: 3 });
    expect(await cli(['webhook', 'list', '--after', uuidV7()])).toMatchObject({ code: 3 });
    expect(await cli(['webhook', 'list', '--after', 'nonsense'])).toMatchObject({ code: 2 });
  });

  it('lists webhooks of several days, even if the clock of a machine was wrong', async () => {
    const { locationId, url } = await open();
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      ids.push(String((await post(url, { eventType: 'ping' })).body['webhookId']));
    }
    // Yesterday's, by its day and its time; the id still says today. And one from a week ahead.
    await system.query(
      `UPDATE webhooks SET day = day - 1, received_at = received_at - interval '1 day' WHERE id = $1`,
      [ids[2]],
    );
    await system.query(
      `UPDATE webhooks SET day = day + 6, received_at = received_at + interval '6 days' WHERE id = $1`,
      [ids[0]],
    );
    const list = (...args: string[]): Promise<Listed[]> =>
      json<Listed[]>('webhook', 'list', '--location', locationId, ...args);
    expect((await list()).map((row) => row.webhookId)).toEqual(ids);
    expect((await list('--after', String(ids[0]))).map((row) => row.webhookId)).toEqual(ids.slice(1));
    expect((await list('--since', '1h')).map((row) => row.webhookId)).toEqual(ids.slice(0, 2));
    for (const id of ids) expect(await replay(id)).toMatchObject({ outcome: 'ignored', replayOf: id });
  });
});

describe('webhook show', () => {
  const STEERING = /[^\P{Cc}\n]|\p{Bidi_Control}/u;

  it('shows a webhook without its sealed data, and with the outcome that it would have today', async () => {
    const { locationId, url } = await misconfigured();
    const serviceOrderId = await order(locationId);
    const id = await send(url, { serviceOrderId, status: 'READY', reason: 'Ada is \u202elate' }, 'dropped', {
      'x-request-id': 'v\x9b2J1',
    });
    const dropped = await replay(id);
    await mend(locationId);
    const applied = await replay(id);
    const shown = await json<Record<string, unknown>>('webhook', 'show', id);
    expect(shown).toMatchObject({
      webhookId: id,
      locationId,
      integration: 'standard',
      outcome: 'dropped',
      reason: expect.stringContaining('no signature'),
      truncated: false,
      replayOf: null,
      headers: { 'content-type': 'application/json' },
      body: { text: JSON.stringify(statusWebhook({ serviceOrderId, status: 'READY', reason: 'Ada is \u202elate' })) },
      today: { events: [{ status: 'ready', serviceOrderId, reason: 'Ada is \u202elate' }] },
      replays: [
        { webhookId: dropped.webhookId, outcome: 'dropped' },
        { webhookId: applied.webhookId, outcome: 'applied' },
      ],
    });
    expect(shown).not.toHaveProperty('sealed');
    expect(await json('webhook', 'show', String(applied.webhookId))).toMatchObject({
      replayOf: id,
      firstReceivedAt: shown['receivedAt'],
      replays: [{ webhookId: dropped.webhookId }],
    });
    const raw = await cli(['webhook', 'show', id, '--json']);
    expect(raw.out).not.toMatch(STEERING);
    expect(JSON.parse(raw.out)).toMatchObject({ headers: { 'x-request-id': 'v\x9b2J1' } });
    const { out } = await cli(['webhook', 'show', id]);
    expect(out).toMatch(/^why +not authentic/m);
    expect(out).toMatch(/^a replay today +would read 1 events$/m);
    expect(out).toMatch(/^Headers\n/m);
    expect(out).toMatch(/^Body, \d+ bytes\n\{/m);
    expect(out).not.toMatch(STEERING);
  });

  it.each([
    ['a body that is not UTF-8', Buffer.from([0x7b, 0xff, 0xfe])],
    ['a body with terminal control sequences', Buffer.from('{"a": "\x1b[2J"}')],
    ['a body with a C1 control', Buffer.from('{"a": "\u009b2J"}')],
  ])('shows %s in base64', async (_what, body) => {
    const { url } = await open();
    const id = String((await post(url, body)).body['webhookId']);
    expect(await json('webhook', 'show', id)).toMatchObject({ body: { base64: body.toString('base64') } });
    const { out } = await cli(['webhook', 'show', id]);
    expect(out).toContain(body.toString('base64'));
    expect(out).not.toMatch(STEERING);
  });

  it('shows a bare carriage return as an escape', async () => {
    const { url } = await open();
    const id = String((await post(url, '{"a":\r\n\t1,\r"b":2}')).body['webhookId']);
    const { out } = await cli(['webhook', 'show', id]);
    expect(out).toContain('{"a":\n\t1,\\u000d"b":2}');
  });
});
