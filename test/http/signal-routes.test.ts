import { createHmac } from 'node:crypto';
import { connect } from 'node:net';
import { request as httpRequest, type OutgoingHttpHeaders } from 'node:http';
import { type CryptoKey, exportJWK, FlattenedSign, generateKeyPair, type JWK } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { makeToken } from '../../src/core/domain/make-token.ts';
import { sign } from '../../src/core/domain/standard-webhooks.ts';
import { parseSettingsKeys } from '../../src/core/locations/settings-key.ts';
import {
  issueSignalToken,
  listSignalTokens,
  revokeSignalToken,
  signalTokenAuthenticator,
} from '../../src/core/signals/signal-tokens.ts';
import { sendJson, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { until } from '../../world/processes/until.ts';
import { OPERATOR_TOKEN } from '../../world/system/ask-operator.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';

/** The secret of the test vector of Standard Webhooks. */
const WHSEC = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

type Answer = { status: number; headers: Record<string, unknown>; body: string };
type Issued = Awaited<ReturnType<typeof issueSignalToken>>;

let system: System;
let plain: Issued;
let orders = 0;

beforeAll(async () => {
  system = await startSystem({
    stepped: 'all',
    processes: 2,
    env: { ALLOW_PRIVATE_HOSTS: '127.0.0.1', OPERATOR_TOKEN },
  });
  plain = await issue('plain', []);
});
afterAll(() => system?.stop());
afterEach(() => vi.restoreAllMocks());

function issue(
  kind: Parameters<typeof issueSignalToken>[2]['kind'],
  secrets: string[],
  expiresAt?: Date,
): Promise<Issued> {
  const keys = parseSettingsKeys(system.env['SETTINGS_KEY'] ?? '');
  return issueSignalToken(system.pool, keys, { kind, secrets, expiresAt });
}

const newId = (): string => `signalled-${(orders += 1)}`;
const isRecorded = async (id: string): Promise<boolean> =>
  (await system.query('SELECT FROM placements WHERE service_order_id = $1', [id])).length === 1;

/** node:http rather than fetch, which would correct the content type and hide how the connection ends. */
function post(
  path: string,
  body: string | Buffer | object,
  headers: OutgoingHttpHeaders = {},
  process = 0,
): Promise<Answer> {
  const bytes =
    typeof body === 'string' || Buffer.isBuffer(body) ? Buffer.from(body) : Buffer.from(JSON.stringify(body));
  return new Promise((resolve, reject) => {
    const url = `${system.urls[process]}${path}`;
    const sent = httpRequest(
      url,
      { method: 'POST', headers: { 'content-length': bytes.length, ...headers } },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text }));
      },
    );
    sent.on('error', reject).end(bytes);
  });
}
const signal = (body: string | Buffer | object, headers?: OutgoingHttpHeaders, token = plain.token): Promise<Answer> =>
  post(`/signal?token=${token}`, body, headers);

describe('a signal by HTTP', () => {
  it.each([
    ['orderId', (id: string) => ({ orderId: id })],
    ['order.id', (id: string) => ({ order: { id } })],
    ['id', (id: string) => ({ id, total: 10 })],
    ['the data of a structured CloudEvent', (id: string) => ({ specversion: '1.0', id: 'no', data: { id } })],
  ])('that names the order in %s is answered 204 when it is committed', async (_where, bodyOf) => {
    const id = newId();
    expect(await signal(bodyOf(id))).toMatchObject({ status: 204, body: '' });
    expect(await isRecorded(id)).toBe(true);
  });

  it('that is a CloudEvent in binary mode has the order as its body', async () => {
    const id = newId();
    const headers = { 'ce-id': 'no', 'ce-specversion': '1.0', 'ce-type': 'order.paid', 'ce-source': '/shop' };
    expect(await signal({ id }, headers)).toMatchObject({ status: 204 });
    expect(await isRecorded(id)).toBe(true);
  });

  it('has its token as a bearer token, too, and its path may have a slash too many', async () => {
    const [one, other] = [newId(), newId()];
    expect(await post('/signal', { id: one }, { authorization: `Bearer ${plain.token}` })).toMatchObject({
      status: 204,
    });
    expect(await post(`//signal/?token=${plain.token}`, { id: other })).toMatchObject({ status: 204 });
    expect([await isRecorded(one), await isRecorded(other)]).toEqual([true, true]);
  });

  it('that comes again is answered 204 and recorded once, whatever its Idempotency-Key', async () => {
    const id = newId();
    const answers = await Promise.all(['a', 'b', 'b'].map((key) => signal({ id }, { 'idempotency-key': key })));
    expect(answers.map(({ status }) => status)).toEqual([204, 204, 204]);
    expect(await isRecorded(id)).toBe(true);
  });

  it.each([
    ['an empty body', '', 'the body is absent or empty'],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), 'the body is not JSON in UTF-8'],
    ['a list', '[{"id": "o-1"}]', 'the body is not a JSON object'],
    ['a number', '{"id": 820982911946154508}', 'is a string of 1 to 255 characters'],
    ['a NUL', '{"id": "a\\u0000"}', 'is a string of 1 to 255 characters'],
    ['a CloudEvent without data', '{"specversion": "1.0", "id": "no"}', 'data of the CloudEvent in the body'],
  ])('with %s instead of an order is answered 400, and nothing is recorded', async (_what, body, detail) => {
    const before = await system.query('SELECT FROM placements');
    const answer = await signal(body);
    expect(answer).toMatchObject({
      status: 400,
      headers: { 'content-type': 'application/problem+json; charset=utf-8' },
    });
    expect(JSON.parse(answer.body)).toMatchObject({ status: 400, detail: expect.stringContaining(detail) as string });
    expect(await system.query('SELECT FROM placements')).toHaveLength(before.length);
  });

  it('of two MiB is answered 400, and the connection is closed', async () => {
    const answer = await signal(JSON.stringify({ id: newId(), x: 'x'.repeat(2 * 2 ** 20) }));
    expect(answer).toMatchObject({ status: 400, headers: { connection: 'close' } });
    expect(answer.body).toContain('1048576 bytes');
  });

  it('of almost one MiB is recorded', async () => {
    const id = newId();
    expect(await signal(JSON.stringify({ id, x: 'x'.repeat(2 ** 20 - 200) }))).toMatchObject({ status: 204 });
  });

  it('is answered 500 while the bodies of its token take too much memory, and other tokens are answered', async () => {
    const other = await issue('plain', []);
    const port = Number(new URL(system.urls[0] ?? '').port);
    const head = `POST /signal?token=${plain.token} HTTP/1.1\r\nHost: x\r\nContent-Length: ${2 ** 20}\r\n\r\n`;
    // None of these bodies ends. BODY_BUDGET is 64 MiB, of which one token gets 16.
    const slow = Array.from({ length: 20 }, () =>
      connect(port, '127.0.0.1')
        .on('error', () => {})
        .on('data', () => {}),
    );
    for (const socket of slow) socket.write(head + ' '.repeat(2 ** 20 - 1));
    const id = newId();
    const refused = await until(async () => {
      const answer = await signal({ id, x: 'x'.repeat(2 ** 20 - 200) });
      return answer.status === 500 && answer;
    });
    expect(refused).toMatchObject({ headers: { 'retry-after': '1', connection: 'close' } });
    expect(await signal({ id: newId() }, {}, other.token)).toMatchObject({ status: 204 });
    for (const socket of slow) socket.destroy();
    await until(async () => (await signal({ id, x: 'x'.repeat(2 ** 20 - 200) })).status === 204);
  });

  it('gets the same 401 for every wrong token, before its body is read, and the connection is closed', async () => {
    const expired = await issue('plain', [], new Date(Date.now() - 1_000));
    const webhook = makeToken('exw_');
    const wrong = ['', '?token=', `?token=${makeToken('exg_')}`, `?token=${webhook}`, `?token=${expired.token}`];
    const twice = `?token=${plain.token}&token=${plain.token}`;
    const answers = await Promise.all([...wrong, twice].map((query) => post(`/signal${query}`, { id: newId() })));
    for (const { status, headers, body } of answers) {
      expect({ status, body, connection: headers['connection'] }).toEqual({
        status: 401,
        body: '{"error":"unauthorized"}',
        connection: 'close',
      });
    }
    expect(
      await metric('expediter_failed_authentications_total', /endpoint="signal",outcome="refused"/),
    ).toBeGreaterThan(5);
  });

  it('is answered 500 with Retry-After while it cannot be recorded', async () => {
    await system.query('ALTER TABLE refreshes RENAME TO refreshes_away');
    try {
      const answer = await signal({ id: newId() });
      expect(answer).toMatchObject({ status: 500, headers: { 'retry-after': '1' } });
    } finally {
      await system.query('ALTER TABLE refreshes_away RENAME TO refreshes');
    }
    expect(await signal({ id: newId() })).toMatchObject({ status: 204 });
  });

  it('is answered 500 if its token cannot be looked up', async () => {
    const unknown = await issue('plain', []);
    await system.query('ALTER TABLE signal_tokens RENAME TO signal_tokens_away');
    try {
      expect(await signal({ id: newId() }, {}, unknown.token)).toMatchObject({ status: 500 });
    } finally {
      await system.query('ALTER TABLE signal_tokens_away RENAME TO signal_tokens');
    }
  });

  it('and the use of its token leave no token in any log line', async () => {
    await signal({ id: newId() });
    await post('/signal?token=', '');
    expect(system.logged.join('\n')).toContain('signal by HTTP refused');
    expect(system.logged.join('\n')).not.toMatch(/exg_/);
  });

  it('is counted by the same metric as a push, and its token has a time of last use', async () => {
    const before = await metric('expediter_signals_total', /outcome="recorded"/);
    await signal({ id: newId() });
    expect(await metric('expediter_signals_total', /outcome="recorded"/)).toBe(before + 1);
    await system.round('recording of last-seen times');
    const row = (await listSignalTokens(system.pool)).find(({ tokenId }) => tokenId === plain.tokenId);
    expect(row).toMatchObject({ state: 'valid', lastUsedAt: expect.any(Date) as Date });
  });
});

describe('a token for signals', () => {
  it('is accepted by each process, and by none five seconds after it is revoked', async () => {
    const { token, tokenId } = await issue('plain', []);
    for (const process of [0, 1]) {
      expect(await post(`/signal?token=${token}`, { id: newId() }, {}, process)).toMatchObject({ status: 204 });
    }
    await revokeSignalToken(system.pool, tokenId);
    const later = performance.now() + 5_001;
    vi.spyOn(performance, 'now').mockReturnValue(later);
    for (const process of [0, 1]) {
      expect(await post(`/signal?token=${token}`, { id: newId() }, {}, process)).toMatchObject({ status: 401 });
    }
  });

  it('that was invented costs one query at a time, however many there are', async () => {
    const now = (): Date => new Date();
    let [running, most, asked] = [0, 0, 0];
    const query = async (statement: unknown): Promise<unknown> => {
      asked += 1;
      most = Math.max(most, (running += 1));
      return system.pool.query(statement as string).finally(() => (running -= 1));
    };
    const judge = signalTokenAuthenticator({ query } as unknown as typeof system.pool, new Map(), now);
    expect(judge('exg_cut-off')).toBeUndefined();
    const flood = Array.from({ length: 1_000 }, async () => judge(makeToken('exg_')));
    expect(new Set(await Promise.all(flood))).toEqual(new Set([undefined]));
    expect({ most, asked }).toEqual({ most: 1, asked: 2 });
  });

  it('whose secret no key decrypts is answered 500, not 401', async () => {
    const { token, tokenId } = await issue('shopify', ['hush']);
    await system.query(`UPDATE signal_tokens SET sealed = 'e30.e30' WHERE token_id = $1`, [tokenId]);
    expect(await signal({ id: newId() }, {}, token)).toMatchObject({ status: 500 });
  });
});

describe('a signal signed by Standard Webhooks', () => {
  const headersOf = (secrets: string[], body: string, at = Date.now()): OutgoingHttpHeaders => {
    const timestamp = String(Math.floor(at / 1_000));
    const [id, other] = ['msg_1', 'v1,aGVsbG8='];
    const signature = `${other} ${sign(secrets, id, timestamp, body)}`;
    return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
  };
  const OTHER = `whsec_${Buffer.alloc(24, 'other').toString('base64')}`;
  let token: string;
  beforeAll(async () => void ({ token } = await issue('standard-webhooks', [WHSEC])));

  it('is recorded with the id in its data', async () => {
    const id = newId();
    const body = JSON.stringify({ type: 'order.paid', timestamp: '2026-01-31T18:30:00Z', id: 'evt', data: { id } });
    expect(await signal(body, headersOf([WHSEC], body), token)).toMatchObject({ status: 204 });
    expect(await isRecorded(id)).toBe(true);
  });

  it('is recorded during a rotation by either secret', async () => {
    const both = await issue('standard-webhooks', [OTHER, WHSEC]);
    for (const secret of [WHSEC, OTHER]) {
      const body = JSON.stringify({ orderId: newId() });
      expect(await signal(body, headersOf([secret], body), both.token)).toMatchObject({ status: 204 });
    }
  });

  it.each([
    ['no signature', () => ({})],
    ['the signature of another secret', (body: string) => headersOf([OTHER], body)],
    ['the signature of another body', () => headersOf([WHSEC], '{"id":"other"}')],
    ['a signature that is over five minutes old', (body: string) => headersOf([WHSEC], body, Date.now() - 302_000)],
    ['a signature that is over five minutes ahead', (body: string) => headersOf([WHSEC], body, Date.now() + 302_000)],
  ])('with %s is answered 401, like a wrong token, and not recorded', async (_what, headers) => {
    const id = newId();
    const body = JSON.stringify({ orderId: id });
    const answer = await signal(body, headers(body), token);
    expect(answer).toMatchObject({ status: 401, body: '{"error":"unauthorized"}', headers: { connection: 'close' } });
    expect(await isRecorded(id)).toBe(false);
  });
});

describe('a signal signed by Shopify', () => {
  const hmac = (secret: string, body: string): string => createHmac('sha256', secret).update(body).digest('base64');
  const bodyOf = (number: number): string =>
    `{"id":820982911946154508,"admin_graphql_api_id":"gid:\\/\\/shopify\\/Order\\/${number}","email":"a@example.com"}`;
  let token: string;
  beforeAll(async () => void ({ token } = await issue('shopify', ['new-secret', 'old-secret'])));

  it.each(['new-secret', 'old-secret'])(
    'is recorded with the id of the GraphQL Admin API, signed by the %s',
    async (secret) => {
      const body = bodyOf(secret.length);
      expect(await signal(body, { 'X-Shopify-Hmac-Sha256': hmac(secret, body) }, token)).toMatchObject({ status: 204 });
      expect(await isRecorded(`gid://shopify/Order/${secret.length}`)).toBe(true);
    },
  );

  it.each([
    ['no signature', () => ({})],
    ['another secret', (body: string) => ({ 'x-shopify-hmac-sha256': hmac('wrong', body) })],
    [
      'the signature in hex',
      (body: string) => ({ 'x-shopify-hmac-sha256': createHmac('sha256', 'new-secret').update(body).digest('hex') }),
    ],
  ])('with %s is answered 401', async (_what, headers) => {
    expect(await signal(bodyOf(99), headers(bodyOf(99)), token)).toMatchObject({ status: 401 });
    expect(await isRecorded('gid://shopify/Order/99')).toBe(false);
  });

  it('about a fulfillment, or with the number alone, is answered 400', async () => {
    for (const body of ['{"admin_graphql_api_id":"gid://shopify/Fulfillment/1"}', '{"id":"7"}', '7', 'null']) {
      const answer = await signal(body, { 'x-shopify-hmac-sha256': hmac('new-secret', body) }, token);
      expect(answer).toMatchObject({ status: 400 });
      expect(answer.body).toContain('admin_graphql_api_id');
    }
  });
});

describe('a signal signed by Saleor', () => {
  let keys: HttpServer;
  let signer: CryptoKey;
  let own: JWK;
  let token: string;

  beforeAll(async () => {
    const { privateKey, publicKey } = await generateKeyPair('RS256');
    signer = privateKey;
    own = { ...(await exportJWK(publicKey)), kid: '1', use: 'sig', alg: 'RS256' };
    keys = await serveHttp((_request, response) => {
      sendJson(response, 200, { keys: [own] });
    });
    ({ token } = await issue('saleor', [`${keys.url}/.well-known/jwks.json`]));
  });
  afterAll(() => keys?.stop());

  /** As Saleor signs: `header..signature`. */
  async function jws(body: string, key = signer, header: object = {}): Promise<string> {
    const protectedHeader = { alg: 'RS256', kid: '1', b64: false, crit: ['b64'], ...header };
    const signed = await new FlattenedSign(new TextEncoder().encode(body))
      .setProtectedHeader(protectedHeader)
      .sign(key);
    return `${signed.protected ?? ''}..${signed.signature}`;
  }

  it.each([
    ['a list of one order, by default', (id: string) => [{ type: 'Order', id, lines: [] }]],
    ['the order of a subscription query', (id: string) => ({ __typename: 'OrderPaid', order: { id } })],
    ['the event of a subscription query', (id: string) => ({ event: { order: { id } } })],
  ])('is recorded with the id in %s', async (_what, bodyOf) => {
    const id = Buffer.from(`Order:${newId()}`).toString('base64');
    const body = JSON.stringify(bodyOf(id));
    expect(await signal(body, { 'saleor-signature': await jws(body) }, token)).toMatchObject({ status: 204 });
    expect(await isRecorded(id)).toBe(true);
  });

  it('by another key, over another body, or by none is answered 401', async () => {
    const { privateKey } = await generateKeyPair('RS256');
    const body = JSON.stringify([{ id: newId() }]);
    const [header = '', , signature = ''] = (await jws(body)).split('.');
    const wrong = [
      '',
      'no jws',
      await jws(body, privateKey),
      await jws('[]'),
      `${header}.${Buffer.from(body).toString('base64url')}.${signature}`,
      `${Buffer.from('{"alg":"none","b64":false,"crit":["b64"]}').toString('base64url')}..`,
    ];
    for (const each of wrong) {
      expect(await signal(body, { 'saleor-signature': each }, token)).toMatchObject({ status: 401 });
    }
  });

  it('with two orders in its list, or none, is answered 400', async () => {
    for (const body of ['[]', '[{"id":"a"},{"id":"b"}]', '{"order":{}}']) {
      expect(await signal(body, { 'saleor-signature': await jws(body) }, token)).toMatchObject({ status: 400 });
    }
  });

  it('is answered 500 while the keys cannot be fetched, and if their host may not be called', async () => {
    const away = await issue('saleor', ['http://127.0.0.1:9/.well-known/jwks.json']);
    const inside = await issue('saleor', ['http://169.254.169.254/jwks.json']);
    const body = JSON.stringify([{ id: newId() }]);
    for (const each of [away, inside]) {
      expect(await signal(body, { 'saleor-signature': await jws(body) }, each.token)).toMatchObject({ status: 500 });
    }
  });
});

async function metric(name: string, labels: RegExp): Promise<number> {
  const answer = await fetch(`${system.operatorUrls[0]}/metrics`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
  });
  const line = (await answer.text()).split('\n').find((each) => each.startsWith(`${name}{`) && labels.test(each));
  if (line === undefined) throw new Error(`there is no ${name}`);
  return Number(line.split(' ').at(-1));
}
