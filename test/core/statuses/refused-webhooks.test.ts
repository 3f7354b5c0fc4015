import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeToken } from '../../../src/core/domain/make-token.ts';
import { issueToken, revokeToken } from '../../../src/core/locations/webhook-tokens.ts';
import { deleteOld } from '../../../src/core/retention/retention-rules.ts';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../../../world/system/ask-operator.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { postWithAgent } from '../../../world/network/post-with-agent.ts';
import { runCli } from '../../support/run-cli.ts';
import { runJson } from '../../support/run-json.ts';
import { signWebhook } from '../../../world/pos/sign-webhook.ts';
import { post, startSystem, statusWebhook } from '../../../world/system/start-system.ts';
import { until } from '../../../world/processes/until.ts';

const MIB = 2 ** 20;
const LIMIT = 200_000;
const SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;
const ORDERS_URL = 'http://127.0.0.1:9/orders';
const UNAUTHORIZED = { status: 401, body: { error: 'unauthorized' } };

let stage: Stage;
let origin: string;
let operator: Operator;

beforeAll(async () => {
  const env = { OPERATOR_TOKEN, WEBHOOK_BODY_LIMIT: String(LIMIT), BODY_BUDGET: String(4 * MIB) };
  stage = await startStage({ env: { ...env, PUBLIC_URL: 'https://expediter.test' } });
  origin = await stage.listen();
  operator = await askOperator(stage.app);
  // Counts are kept from the first scrape on.
  await metrics();
});
afterAll(() => stage?.stop());

let places = 0;
async function place(settings: object = {}): Promise<string> {
  places += 1;
  await stage.addLocation(`club-${places}`, { ordersUrl: ORDERS_URL, ...settings });
  return `club-${places}`;
}

const urlOf = async (locationId: string): Promise<string> => `${origin}${await stage.webhookPath(locationId)}`;
const revoke = async (url: string): Promise<void> => {
  const locationId = new URL(url).pathname.split('/').at(-1) ?? '';
  const rows = await stage.query(
    'SELECT token_id FROM webhook_tokens WHERE location_id = $1 ORDER BY created_at DESC',
    [locationId],
  );
  await revokeToken(stage.pool, String(rows[0]?.['token_id']));
};

/** The URL of a location with a token that has been revoked. */
async function revokedUrl(locationId: string): Promise<string> {
  const url = await urlOf(locationId);
  await revoke(url);
  return url;
}

/** A location's URL with an old token, and the one with a valid token. */
async function bothUrls(): Promise<{ locationId: string; old: string; valid: string }> {
  const locationId = await place();
  return { locationId, old: await revokedUrl(locationId), valid: await urlOf(locationId) };
}

async function order(locationId: string): Promise<string> {
  const serviceOrderId = `order-${randomUUID()}`;
  await stage.seedOrder({ serviceOrderId, locationId });
  return serviceOrderId;
}

const keptOf = (locationId: string): Promise<Record<string, unknown>[]> =>
  stage.query('SELECT * FROM webhooks WHERE location_id = $1 ORDER BY received_at', [locationId]);

const countOf = async (locationId: string): Promise<number> =>
  Number((await stage.query('SELECT count(*) AS n FROM webhooks WHERE location_id = $1', [locationId]))[0]?.['n']);

/** What is kept of a location, once something is. */
async function kept(locationId: string, count = 1): Promise<Record<string, unknown>[]> {
  await until(async () => (await countOf(locationId)) >= count);
  return keptOf(locationId);
}

/** The body of a row as operators see it. */
async function shownBody(row: Record<string, unknown> | undefined): Promise<string> {
  const { body } = (await operator.get(`/webhooks/${String(row?.['id'])}`)).body as { body: { base64: string } };
  return Buffer.from(body.base64, 'base64').toString();
}

/** Whatever is to be kept of a refused webhook is kept by then. */
async function settled(): Promise<void> {
  const locationId = await place();
  await post(await revokedUrl(locationId), 'the last');
  await kept(locationId);
}

describe.each<[string, (locationId: string) => Promise<string>]>([
  ['revoked', revokedUrl],
  [
    'expired',
    async (locationId) => {
      const { token } = await issueToken(stage.pool, { locationId, expiresAt: new Date(Date.now() - 1_000) });
      return `${origin}/webhook/standard/${locationId}?token=${token}`;
    },
  ],
  [
    'of another integration',
    async (locationId) => {
      const url = await urlOf(locationId);
      await stage.query(`UPDATE locations SET integration = 'square' WHERE location_id = $1`, [locationId]);
      return url;
    },
  ],
])('a webhook with a token that is %s', (state, urlOf) => {
  it('is answered 401 and stored as dropped, and does not move the order', async () => {
    const locationId = await place();
    const serviceOrderId = await order(locationId);
    const url = await urlOf(locationId);
    const body = statusWebhook({ serviceOrderId, status: 'READY' });
    expect(await post(url, body, { 'x-of-the-pos': 'a header' })).toMatchObject(UNAUTHORIZED);
    const [webhook, ...others] = await kept(locationId);
    expect(others).toEqual([]);
    expect(webhook).toMatchObject({
      outcome: 'dropped',
      reason: `refused: old token, ${state}`,
      cause: { code: 'old_token', state },
      integration: 'standard',
      events: 0,
      truncated: false,
    });
    // These settings are of no use to the other integration, so nobody knows their secrets.
    if (state !== 'of another integration') expect(await shownBody(webhook)).toBe(JSON.stringify(body));
    // Nobody reads the location's settings for it, so it may hold one of its secrets.
    expect(String(webhook?.['body'])).toBe('');
    expect(JSON.stringify(webhook?.['headers'])).not.toContain('a header');
    expect(await stage.order(serviceOrderId)).toMatchObject({ rank: 10, sequence: 2 });
    expect(stage.logged.join('')).not.toContain(new URL(url).searchParams.get('token'));
  });
});

describe('a POS that uses an old token is shown', () => {
  it('on the location with the command that fixes it, in the list and in a metric', async () => {
    const locationId = await place();
    await post(await urlOf(locationId), 'no JSON');
    const url = await revokedUrl(locationId);
    const before = await operator.get(`/locations/${locationId}`);
    expect(before.body).toMatchObject({ oldToken: null });
    await post(url, { eventType: 'ping' });
    await post(url, { eventType: 'ping' });
    const webhooks = await kept(locationId, 3);

    const shown = await operator.get(`/locations/${locationId}`);
    const { tokenId } = (webhooks[2]?.['cause'] ?? {}) as { tokenId?: string };
    expect(tokenId).toBeDefined();
    expect(shown.body).toMatchObject({ oldToken: { webhooks: 2, tokenId, state: 'revoked' } });
    expect(shown.body).toMatchObject({ tokens: expect.arrayContaining([expect.objectContaining({ tokenId })]) });
    const { out } = await runCli(stage.env, ['location', 'show', locationId]);
    expect(out).toMatch(/refused: old token +2 in 24 h, the last at 20/);
    expect(out).toContain(`expediter token issue --location ${locationId}`);

    const ofPlace = `/webhooks?location=${locationId}`;
    const ids = (answer: { body: Record<string, unknown> }): number => (answer.body['webhooks'] as unknown[]).length;
    expect(ids(await operator.get(ofPlace))).toBe(3);
    expect(ids(await operator.get(`${ofPlace}&oldToken=true`))).toBe(2);
    expect(ids(await operator.get(`${ofPlace}&oldToken=false`))).toBe(1);
    const listed = await runJson<unknown[]>(stage.env, ['webhook', 'list', '--location', locationId, '--old-token']);
    expect(listed).toHaveLength(2);

    const [, count] =
      /expediter_webhooks_dropped_total\{integration="standard",cause="old_token"\} (\d+)/.exec(await metrics()) ?? [];
    expect(Number(count)).toBeGreaterThanOrEqual(2);
    expect(stage.logged.join('')).toContain('old token, webhook stored');
  });

  it('as a silent POS, because its webhooks are refused', async () => {
    const locationId = await place();
    await post(await revokedUrl(locationId), { eventType: 'ping' });
    await kept(locationId);
    const seen = async (): Promise<unknown> => {
      const { tasks } = stage.app.observability;
      await tasks.find(({ name }) => name === 'recording of last-seen times')?.work();
      return (await operator.get(`/locations/${locationId}`)).body['lastSeenAt'];
    };
    expect(await seen()).toBeNull();
    await post(await urlOf(locationId), { eventType: 'ping' });
    expect(await seen()).toEqual(expect.any(String));
  });
});

async function metrics(): Promise<string> {
  const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
  return (await fetch(`${origin}/metrics`, { headers })).text();
}

describe('a replay of a refused webhook', () => {
  it('applies the webhook if it is replayed by its id', async () => {
    const locationId = await place();
    const serviceOrderId = await order(locationId);
    await post(await revokedUrl(locationId), statusWebhook({ serviceOrderId, status: 'READY' }));
    const [webhook] = await kept(locationId);
    const replayed = await operator.post(`/webhooks/${String(webhook?.['id'])}/replay`);
    expect(replayed).toMatchObject({ status: 200, body: { outcome: 'applied' } });
    expect(await stage.order(serviceOrderId)).toMatchObject({ status: 'ready', sequence: 3 });
  });

  it('verifies the signature, like that of any dropped webhook', async () => {
    const locationId = await place({ secret: SECRET });
    const url = await revokedUrl(locationId);
    const serviceOrderId = await order(locationId);
    const body = JSON.stringify(statusWebhook({ serviceOrderId, status: 'READY' }));
    await post(url, body, signWebhook(`whsec_${Buffer.alloc(24, 1).toString('base64')}`, body));
    await kept(locationId);
    await post(url, body, signWebhook(SECRET, body));
    const [forged, signed] = await kept(locationId, 2);
    const replay = (webhook: Record<string, unknown> = {}): ReturnType<Operator['post']> =>
      operator.post(`/webhooks/${String(webhook['id'])}/replay`);
    expect(await replay(forged)).toMatchObject({ body: { outcome: 'dropped', cause: { code: 'signature_wrong' } } });
    expect(await replay(signed)).toMatchObject({ body: { outcome: 'applied' } });
  });

  it("needs the webhook's id or an explicit filter, because the token may be all that stopped a forger", async () => {
    const locationId = await place();
    const serviceOrderId = await order(locationId);
    await post(await revokedUrl(locationId), statusWebhook({ serviceOrderId, status: 'READY' }));
    await kept(locationId);
    const matching = { location: locationId, outcome: 'dropped' };
    expect(await operator.post('/webhooks/replay', matching)).toMatchObject({ body: { replayed: [], refused: [] } });
    const all = ['webhook', 'replay', '--location', locationId];
    expect(await runJson(stage.env, [...all, '--outcome', 'dropped'])).toMatchObject({ outcomes: {} });
    expect(await stage.order(serviceOrderId)).toMatchObject({ rank: 10 });

    const asked = await operator.post('/webhooks/replay', { location: locationId, oldToken: true, dryRun: true });
    expect(asked).toMatchObject({ status: 200, body: { outcomes: { applied: 1 } } });
    expect(await runJson(stage.env, [...all, '--old-token'])).toMatchObject({ outcomes: { applied: 1 } });
    expect(await stage.order(serviceOrderId)).toMatchObject({ status: 'ready' });
  });
});

describe('a refused webhook is not stored', () => {
  const withToken = (url: string, token: string): string => url.replace(/token=.*/, `token=${token}`);

  it.each<[string, (old: string, other: string) => string]>([
    ['with an invented token', (old) => withToken(old, makeToken('exw_'))],
    ['with an old token at another location', (old, other) => withToken(other, old.split('token=')[1] ?? '')],
    ['with an old token at another integration', (old) => old.replace('/standard/', '/square/')],
  ])('%s, and is answered with the same 401', async (_what, target) => {
    const [locationId, otherId] = [await place(), await place()];
    const [old, other] = [await revokedUrl(locationId), await urlOf(otherId)];
    const url = target(old, other);
    expect(await post(url, { eventType: 'ping' })).toMatchObject(UNAUTHORIZED);
    await settled();
    expect([...(await keptOf(locationId)), ...(await keptOf(otherId))]).toEqual([]);
  });

  it('with a token that was deleted with its location', async () => {
    const locationId = await place();
    const url = await urlOf(locationId);
    await stage.query('DELETE FROM locations WHERE location_id = $1', [locationId]);
    expect(await post(url, { eventType: 'ping' })).toMatchObject(UNAUTHORIZED);
    await settled();
    expect(await keptOf(locationId)).toEqual([]);
  });

  it.each<[string, (socket: Socket) => void]>([
    ['with a body over WEBHOOK_BODY_LIMIT', (socket) => void socket.write('x'.repeat(LIMIT + 10_000))],
    ['with a body that does not end', (socket) => void socket.write('x'.repeat(100))],
  ])('%s', async (_what, send) => {
    const locationId = await place();
    const socket = await open(await revokedUrl(locationId), 3 * LIMIT);
    socket.resume();
    send(socket);
    await once(socket, 'close');
    await settled();
    expect(await keptOf(locationId)).toEqual([]);
  });
});

/** Sends the head of a webhook alone. */
async function open(url: string, length: number): Promise<Socket> {
  const { hostname, port, pathname, search } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) }).on('error', () => {});
  socket.write(`POST ${pathname}${search} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`);
  return socket;
}

describe('a caller who guesses tokens', () => {
  // A body that the server waited for would never end.
  beforeAll(() => void Object.assign(stage.app.server, { requestTimeout: 0, headersTimeout: 0 }));
  afterAll(() => void Object.assign(stage.app.server, { requestTimeout: 15_000, headersTimeout: 15_000 }));

  /** All that comes back until the connection ends, but for the time of day. */
  async function seen(url: string, length: number, sent: number): Promise<{ text: string; atOnce: string }> {
    const socket = await open(url, length);
    let text = '';
    socket.setEncoding('latin1').on('data', (part: string) => (text += part));
    await until(() => Promise.resolve(text.includes('unauthorized')));
    const atOnce = text;
    if (!socket.destroyed) socket.write('x'.repeat(sent));
    if (!socket.closed) await once(socket, 'close');
    const masked = (said: string): string => said.replace(/date: .*\r\n/i, '').replace(/x-request-id: .*\r\n/i, '');
    return { text: masked(text), atOnce: masked(atOnce) };
  }

  it.each([
    ['a complete body', 1_000, 1_000],
    ['a body that does not end', 1_000, 100],
    ['a body over the limit', 10 * LIMIT, 2 * LIMIT],
  ])('cannot tell whether a token was ever valid: %s', async (_, ...about) => {
    const old = await revokedUrl(await place());
    const known = await seen(old, ...about);
    const invented = await seen(old.replace(/token=.*/, `token=${makeToken('exw_')}`), ...about);
    expect(known.text).toBe(invented.text);
    expect(known.atOnce).toBe(invented.atOnce);
    expect(known.atOnce).toMatch(/^HTTP\/1.1 401 /);
  });
});

describe('a connection with an accepted token', () => {
  it('stays open after a webhook with an old token, and the webhook is stored whole', async () => {
    const { locationId, old, valid } = await bothUrls();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<Socket>();
    agent.on('free', (socket: Socket) => sockets.add(socket));
    const send = (url: string, body: string): Promise<string> =>
      postWithAgent(url, agent, { headers: { 'content-length': Buffer.byteLength(body) }, body });
    const large = `"${'y'.repeat(60_000)}"`;
    expect(await send(valid, '{}')).toBe('200');
    for (const body of ['', 'small', large]) expect(await send(old, body)).toBe('401');
    expect(await send(valid, '{}')).toBe('200');
    agent.destroy();
    expect(sockets.size).toBe(1);
    const bodies = (await kept(locationId, 5)).filter(({ reason }) => String(reason).startsWith('refused'));
    expect((await Promise.all(bodies.map(shownBody))).toSorted()).toEqual(['', 'small', large].toSorted());
  });

  it('stays open after a webhook with an old token and a body that is longer than we read', async () => {
    const small = await startStage({ databaseUrl: stage.databaseUrl, env: { WEBHOOK_BODY_LIMIT: '1024' } });
    const { old, valid } = await bothUrls();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    try {
      const there = await small.listen();
      const send = (url: string, body: string): Promise<string> =>
        postWithAgent(url.replace(origin, there), agent, { headers: { 'content-length': body.length }, body });
      expect(await send(valid, '{}')).toBe('200');
      expect(await send(old, 'y'.repeat(60_000))).toBe('401');
      expect(await send(valid, '{}')).toBe('200');
    } finally {
      agent.destroy();
      await small.stop();
    }
  });
});

describe('a caller with an old token', () => {
  it('takes no capacity from callers with a valid token, because refused bodies are counted separately', async () => {
    const { old, valid } = await bothUrls();
    const slow = await Promise.all(Array.from({ length: 6 }, () => open(old, LIMIT - 1)));
    const send = (socket: Socket): Promise<void> =>
      new Promise((sent) => socket.write('x'.repeat(160_000), () => sent()));
    await Promise.all(slow.map(send));
    // The stage reads what has arrived before it answers the next requests.
    for (let nth = 0; nth < 3; nth += 1) await metrics();
    const answer = await post(valid, JSON.stringify('x'.repeat(150_000)));
    expect(answer).toMatchObject({ status: 200, body: { outcome: 'dropped' } });
    for (const socket of slow) socket.destroy();
  });

  it('cannot fill the disk, because refused webhooks have a daily quota of their own', async () => {
    const locationId = await place();
    const old = await revokedUrl(locationId);
    const body = 'x'.repeat(180_000);
    const isSpent = (): boolean => stage.logged.join('').includes('too many webhooks were refused for an old token');
    let sent = 0;
    // One at a time: one that comes before the last was committed may find no room.
    for (; sent < 500 && !isSpent(); sent += 1) {
      expect(await postWithAgent(old, new Agent(), { headers: { 'content-length': body.length }, body })).toBe('401');
      await until(async () => isSpent() || (await countOf(locationId)) === sent + 1);
    }
    expect(isSpent()).toBe(true);
    await settled();
    const [{ bytes, count } = {}] = await stage.query(
      `SELECT sum(coalesce(zstd_of, octet_length(body)) + octet_length(sealed) + octet_length(headers::text))::int AS bytes,
              count(*)::int AS count
       FROM webhooks WHERE location_id = $1`,
      [locationId],
    );
    expect(Number(bytes)).toBeGreaterThan(15 * MIB);
    expect(Number(bytes)).toBeLessThan(17 * MIB);
    expect(Number(count)).toBeLessThan(sent);
    expect(await stage.query('SELECT FROM dropped_bytes WHERE location_id = $1', [locationId])).toEqual([]);
    const valid = await post(await urlOf(locationId), 'x');
    expect(valid).toMatchObject({ status: 200, body: { outcome: 'dropped', webhookId: expect.any(String) } });
  });
});

describe('a stored refused webhook', () => {
  const moveTo = (locationId: string, hoursAgo: number): Promise<unknown> =>
    stage.query(
      `WITH at AS (SELECT now() - make_interval(hours => $2::int) AS at)
       UPDATE webhooks SET received_at = at.at, day = (at.at AT TIME ZONE 'UTC')::date FROM at WHERE location_id = $1`,
      [locationId, hoursAgo],
    );

  it('is deleted after REFUSED_KEEP hours, but its replay and other dropped webhooks stay', async () => {
    for (const ago of [0, 1, 2]) {
      await stage.query(`SELECT ensure_webhook_partition((now() AT TIME ZONE 'UTC')::date - $1::int)`, [ago]);
    }
    const [old, young, dropped] = [await place(), await place(), await place()];
    for (const locationId of [old, young]) {
      const serviceOrderId = await order(locationId);
      await post(await revokedUrl(locationId), statusWebhook({ serviceOrderId, status: 'READY' }));
    }
    await post(await urlOf(dropped), 'no JSON');
    const [webhook] = await kept(old);
    await kept(young);
    await moveTo(old, 25);
    await moveTo(young, 23);
    await moveTo(dropped, 25);
    expect(await operator.post(`/webhooks/${String(webhook?.['id'])}/replay`)).toMatchObject({ status: 200 });
    await deleteOld(stage.pool, 'deletion of refused webhooks', 24 * 3_600);
    expect(await keptOf(old)).toMatchObject([{ outcome: 'applied', replay_of: webhook?.['id'] }]);
    expect(await keptOf(young)).toHaveLength(1);
    expect(await keptOf(dropped)).toHaveLength(1);
  });

  it('is deleted if REFUSED_KEEP is 0, and new refused webhooks are not stored', async () => {
    const locationId = await place();
    const old = await revokedUrl(locationId);
    await post(old, { eventType: 'ping' });
    await kept(locationId);
    const off = await startSystem({ stepped: 'all', databaseUrl: stage.databaseUrl, env: { REFUSED_KEEP: '0' } });
    try {
      await off.round('deletion of refused webhooks');
      expect(await keptOf(locationId)).toEqual([]);
      const there = old.replace(origin, off.urls[0] ?? '');
      expect(await post(there, { eventType: 'ping' })).toMatchObject(UNAUTHORIZED);
      await until(() => Promise.resolve(off.logged.join('').includes('old token, webhook not stored')));
      expect(await keptOf(locationId)).toEqual([]);
    } finally {
      await off.stop();
    }
  });
});
