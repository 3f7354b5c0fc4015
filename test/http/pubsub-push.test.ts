import { createServer, type OutgoingHttpHeaders, request as httpRequest, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import Fastify from 'fastify';
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createPushTokenVerifier, pubsubPush } from '../../src/http/pubsub-push.ts';
import { logJourneys } from '../../src/observe/events.ts';
import { until } from '../../world/processes/until.ts';

const AUDIENCE = 'https://expediter.example.com/pubsub/push';
const ACCOUNT = 'push@my-project.iam.gserviceaccount.com';
const ISSUER = 'https://accounts.google.com';
const claims = { email: ACCOUNT, email_verified: true };

type Answer = { status: number; headers: Record<string, unknown>; body: string };
type Logged = { level: number; detail?: string; messageId?: string };

let recorded: string[];
let logged: Logged[];
let failing: boolean;
const closing: (() => unknown)[] = [];

beforeEach(() => {
  recorded = [];
  logged = [];
  failing = false;
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

describe('a push of Pub/Sub', () => {
  let port: number;
  beforeEach(async () => {
    port = await serve();
  });

  it.each([
    ['attributes.orderId', wrapped({ orderId: 'no' }, { orderId: 'o-1' })],
    ['attributes.orderId, without data', { message: { attributes: { orderId: 'o-1' }, messageId: '1' } }],
    ['attributes.orderId, with data that is no JSON', { message: { attributes: { orderId: 'o-1' }, data: 'e30=x' } }],
    ['data.orderId', wrapped({ orderId: 'o-1', order: { id: 'no' }, id: 'no' })],
    ['data.order.id', wrapped({ order: { id: 'o-1' }, id: 'no' })],
    ['data.id', wrapped({ id: 'o-1' })],
    [
      'the next place if one is empty',
      wrapped({ orderId: 7, order: { id: 'x'.repeat(256) }, id: 'o-1' }, { orderId: '' }),
    ],
    ['the next place if an id cannot be stored', wrapped({ orderId: 'a\0', order: { id: '\ud800' }, id: 'o-1' })],
    ['the body itself, unwrapped', { order: { id: 'o-1' } }],
    ['an unwrapped body that looks like a message', { id: 'o-1', message: 'hello' }],
    ['an unwrapped body with a field message', { orderId: 'o-1', message: { text: 'no onions', id: 'no' } }],
    ['an unwrapped body with a field message that has data', { id: 'o-1', message: { data: 'no onions' } }],
    ['the data of a CloudEvent', wrapped(eventOf({ orderId: 'o-1' }))],
    ['the data of a CloudEvent, which is an order', eventOf({ id: 'o-1' })],
    ['the data of a CloudEvent, as a text', wrapped(eventOf(JSON.stringify({ order: { id: 'o-1' } })))],
    ['the data of a CloudEvent, in base64', wrapped({ ...eventOf(undefined), data_base64: base64({ id: 'o-1' }) })],
    ['the message in a CloudEvent', wrapped(eventOf({ message: { data: base64({ id: 'o-1' }), messageId: 'no' } }))],
    ['an orderId next to the data of a CloudEvent', { ...eventOf({ id: 'no' }), orderId: 'o-1' }],
  ])('is recorded with the order id from %s', async (_name, envelope) => {
    expect(await push(port, envelope)).toMatchObject({ status: 204, body: '' });
    expect(recorded).toEqual(['o-1']);
  });

  it('is recorded with an id of 255 characters', async () => {
    await push(port, wrapped({ id: 'x'.repeat(255) }));
    expect(recorded).toEqual(['x'.repeat(255)]);
  });

  it('that is unwrapped is recorded with the orderId of its headers, not with that of its body', async () => {
    const headers = { orderId: 'o-1', 'x-goog-pubsub-message-id': '17' };
    expect(await push(port, { id: 'no' }, headers)).toMatchObject({ status: 204 });
    expect(await push(port, '', headers)).toMatchObject({ status: 204 });
    expect(recorded).toEqual(['o-1', 'o-1']);
  });

  it('is read as unwrapped if its headers say so, even if its body looks wrapped', async () => {
    const headers = { 'x-goog-pubsub-message-id': '17' };
    await push(port, { id: 'o-1', message: { attributes: { orderId: 'no' } } }, headers);
    expect(recorded).toEqual(['o-1']);
  });

  it('is read as wrapped if its headers say unwrapped but its body is wrapped and has an id', async () => {
    await push(port, wrapped({ id: 'o-1' }), { 'x-goog-pubsub-message-id': '17' });
    expect(recorded).toEqual(['o-1']);
  });

  it('that is wrapped is not recorded with the orderId of its headers', async () => {
    await push(port, wrapped({ id: 'o-1' }), { orderId: 'no' });
    expect(recorded).toEqual(['o-1']);
  });

  it('is acknowledged if the signal is known already', async () => {
    expect(await push(port, wrapped({ id: 'known' }))).toMatchObject({ status: 204 });
  });

  it.each([
    ['an empty body', '', undefined],
    ['a body that is not JSON', '{"secret', undefined],
    ['bytes that are not UTF-8', Buffer.from('{"id":"secret\xff"}', 'latin1'), undefined],
    ['null', 'null', undefined],
    ['a list', ['secret'], undefined],
    ['an empty envelope', { message: {}, subscription: 's' }, undefined],
    ['data that is not JSON in base64', { message: { data: 'secret', messageId: 'm-1' } }, 'm-1'],
    ['data that is not a string', { message: { data: { id: 'secret' }, messageId: 'm-1' } }, 'm-1'],
    ['a message without an id', wrapped({ secret: 'secret' }), 'm-1'],
    ['a CloudEvent with only its own id', { ...eventOf({ secret: 1 }), id: 'secret' }, undefined],
    ['a CloudEvent in another one', eventOf({ ...eventOf({ id: 'secret' }), id: 'secret' }), undefined],
    ['an id on its prototype', '{"__proto__":{"id":"secret"}}', undefined],
    ['attributes of a wrong type', { message: { attributes: 'secret', messageId: 7 } }, undefined],
    ['100,000 nested lists', '['.repeat(100_000) + ']'.repeat(100_000), undefined],
  ])('that cannot be read is answered 204 and logged: %s', async (_name, body, messageId) => {
    expect(await push(port, body)).toMatchObject({ status: 204, body: '' });
    expect(recorded).toEqual([]);
    const warnings = logged.filter(({ level }) => level === 40);
    expect(warnings).toEqual([expect.objectContaining({ detail: expect.any(String) })]);
    expect(warnings[0]?.messageId).toBe(messageId);
    expect(JSON.stringify(logged)).not.toContain('secret');
  });

  it.each([
    'application/json',
    'text/plain',
    'multipart/form-data',
    'not a type',
    ';;;',
    '',
    'application/json; charset',
  ])('is recorded with the Content-Type %j', async (type) => {
    expect(await push(port, wrapped({ id: 'o-1' }), { 'content-type': type })).toMatchObject({ status: 204 });
    expect(recorded).toEqual(['o-1']);
  });

  it('is recorded if it comes in chunks and without a Content-Type', async () => {
    const headers = { 'content-type': undefined, 'transfer-encoding': 'chunked' };
    expect(await push(port, wrapped({ id: 'o-1' }), headers)).toMatchObject({ status: 204 });
    expect(recorded).toEqual(['o-1']);
  });

  it('is recorded if it has at most 16 MiB', async () => {
    const padding = 16 * 2 ** 20 - JSON.stringify({ id: 'o-1', padding: '' }).length;
    await push(port, { id: 'o-1', padding: 'x'.repeat(padding) });
    expect(recorded).toEqual(['o-1']);
  });

  it('is answered 204 and not recorded if it has over 16 MiB', async () => {
    // What is kept of it would do as a signal.
    const body = JSON.stringify({ id: 'o-1' }) + ' '.repeat(16 * 2 ** 20);
    expect(await push(port, body)).toMatchObject({ status: 204, headers: { connection: 'close' } });
    expect(await push(port, body, { 'transfer-encoding': 'chunked' })).toMatchObject({ status: 204 });
    expect(recorded).toEqual([]);
  });

  it('is not read to its end if its body is endless', async () => {
    const { answer, bytes } = await new Promise<{ answer: string; bytes: number }>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write('POST /pubsub/push HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n');
        const chunk = `100000\r\n${'x'.repeat(2 ** 20)}\r\n`;
        const flood = (): void => {
          while (!socket.destroyed && socket.write(chunk));
        };
        socket.on('drain', flood);
        flood();
      });
      const end = (answer: string): void => resolve({ answer, bytes: socket.bytesWritten });
      // Where bytes are under way to a socket that is closed, its reset may overtake the answer.
      socket.on('data', (heard) => end(heard.toString())).on('error', ({ message }) => end(message));
      closing.push(() => socket.destroy());
    });
    expect(answer).toMatch(/^HTTP\/1.1 204 |ECONNRESET|EPIPE/);
    expect(bytes).toBeLessThan(2 ** 26);
    expect(recorded).toEqual([]);
    expect(await push(port, { id: 'o-2' })).toMatchObject({ status: 204 });
  });

  it('that breaks off is not recorded', async () => {
    const socket = connect(port, '127.0.0.1');
    socket.write('POST /pubsub/push HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"id":"o-1"}');
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(recorded).toEqual([]);
    expect(await push(port, { id: 'o-2' })).toMatchObject({ status: 204 });
  });

  it('is answered 503 with Retry-After if it cannot be recorded', async () => {
    failing = true;
    expect(await push(port, wrapped({ id: 'o-1' }))).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      body: '',
    });
  });
});

describe('the token of a push', () => {
  let key: CryptoKey;
  let publicKey: CryptoKey;
  let otherKey: CryptoKey;
  let port: number;
  let jwks: { url: string; status: number; hits: number; hang: boolean };

  beforeAll(async () => {
    ({ privateKey: key, publicKey } = await generateKeyPair('RS256', { extractable: true }));
    ({ privateKey: otherKey } = await generateKeyPair('RS256'));
  });
  beforeEach(async () => {
    jwks = await serveKeys();
    port = await serveWith(jwks.url);
  });

  it('is refused with a hint if Cloud Run has removed its signature', async () => {
    const unsigned = (await token()).replace(/[^.]*$/, 'SIGNATURE_REMOVED_BY_GOOGLE');
    expect(await pushWith(unsigned)).toMatchObject({ status: 401 });
    expect(logged).toContainEqual(
      expect.objectContaining({ detail: expect.stringContaining('--no-invoker-iam-check') }),
    );
  });

  it('is accepted with the right issuer, audience, account and signature', async () => {
    expect(await pushWith(await token())).toMatchObject({ status: 204 });
    expect(recorded).toEqual(['o-1']);
  });

  it("is accepted with Google's issuer without https://", async () => {
    expect(await pushWith(await token({ iss: 'accounts.google.com' }))).toMatchObject({ status: 204 });
  });

  it.each([
    ['another issuer', { iss: 'https://accounts.example.com' }],
    ['no issuer', { iss: undefined }],
    ['another audience', { aud: 'https://other.example.com/pubsub/push' }],
    ['an audience that begins with ours', { aud: `${AUDIENCE}/` }],
    ['several audiences', { aud: [AUDIENCE, 'https://other.example.com'] }],
    ['a list with our audience', { aud: [AUDIENCE] }],
    ['no audience', { aud: undefined }],
    ['another account', { email: 'push@evil.iam.gserviceaccount.com' }],
    ['an account that begins with ours', { email: `${ACCOUNT}.evil.example` }],
    ['an account that ends with ours', { email: `x${ACCOUNT}` }],
    ['no account', { email: undefined }],
    ['an unverified account', { email_verified: false }],
    ['an account verified as a text', { email_verified: 'true' }],
    ['an account without email_verified', { email_verified: undefined }],
    ['an expiry in the past', { exp: Math.floor(Date.now() / 1000) - 1 }],
    ['no expiry', { exp: undefined }],
    ['a time in the future before which it is not valid', { nbf: Math.floor(Date.now() / 1000) + 600 }],
  ])('is refused with %s', async (_name, wrong) => {
    await refused(await token(wrong));
  });

  it('is refused if another key signed it', async () => {
    await refused(await token({}, { signer: otherKey }));
    await refused(await token({}, { kid: 'k-9' }));
  });

  it('is refused with a changed signature or changed claims', async () => {
    const [header, , signature] = (await token()).split('.');
    const [, payload] = (await token({ email: 'x@y.z' })).split('.');
    await refused(`${header}.${payload}.${signature}`);
    await refused((await token()).slice(0, -8));
  });

  it('is refused if it has alg none, or is signed with the public key as an HMAC secret', async () => {
    await refused(new UnsecuredJWT({ ...claims, iss: ISSUER, aud: AUDIENCE }).setExpirationTime('1h').encode());
    const secret = new TextEncoder().encode(await exportSPKI(publicKey));
    await refused(await token({}, { alg: 'HS256', signer: secret }));
  });

  it('is refused with another algorithm of the same key', async () => {
    const { privateKey, publicKey } = await generateKeyPair('PS256', { extractable: true });
    const { alg: _left, ...jwk } = await exportJWK(publicKey);
    port = await serveWith((await serveKeys([{ ...jwk, kid: 'k-1' }])).url);
    await refused(await token({}, { alg: 'PS256', signer: privateKey }));
  });

  it.each(['no header', '', 'Bearer', 'Bearer  ', 'Basic dXNlcjp3b3Jk', 'Bearer a b', 'Bearer a.b.c', 'Bearer x'])(
    'is refused if it is missing or malformed: %j',
    async (header) => {
      const authorization = header === 'no header' ? undefined : header;
      const answer = await push(port, wrapped({ id: 'o-1' }), { authorization });
      expect(answer).toMatchObject({ status: 401, body: '' });
      expect(recorded).toEqual([]);
    },
  );

  it("is refused before the push's body is read", async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      socket.write('POST /pubsub/push HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n');
      let text = '';
      socket.on('data', (bytes) => (text += bytes.toString()));
      socket.on('close', () => resolve(text)).on('error', reject);
    });
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
    expect(answer).toMatch(/connection: close/i);
  });

  it('is refused with 401 even if the push has a large body', async () => {
    const body = { id: 'o-1', padding: 'x'.repeat(8 * 2 ** 20) };
    // The reset of a socket that is closed unread may overtake the answer.
    await until(async () => {
      const answer = await push(port, body, { authorization: 'Bearer a.b.c' }).catch(() => undefined);
      return answer?.status === 401;
    });
  });

  it('is answered 503 while the keys cannot be fetched', async () => {
    jwks.status = 500;
    expect(await pushWith(await token())).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    jwks.status = 200;
    await until(async () => (await pushWith(await token())).status === 204);
    expect(jwks.hits).toBe(2);
  });

  it('is answered 503 if the keys are over 1 MiB', async () => {
    const large = [{ ...(await exportJWK(publicKey)), kid: 'k-1', alg: 'RS256' }, { n: 'x'.repeat(2 ** 20) }];
    port = await serveWith((await serveKeys(large)).url);
    expect(await pushWith(await token())).toMatchObject({ status: 503 });
  });

  it('is answered 503 while the issuer of the keys hangs', async () => {
    jwks.hang = true;
    expect(await pushWith(await token())).toMatchObject({ status: 503 });
  });

  it('is not in the log', async () => {
    const bad = await token({ exp: 1 });
    await refused(bad);
    for (const part of bad.split('.')) expect(JSON.stringify(logged)).not.toContain(part);
  });

  async function refused(bad: string): Promise<void> {
    expect(await pushWith(bad)).toMatchObject({ status: 401, headers: { connection: 'close' }, body: '' });
    expect(recorded).toEqual([]);
  }

  const serveWith = (jwksUrl: string): Promise<number> =>
    serve({ jwksUrl, issuer: ISSUER, audience: AUDIENCE, serviceAccount: ACCOUNT });

  function pushWith(token: string): Promise<Answer> {
    return push(port, wrapped({ id: 'o-1' }), { authorization: `Bearer ${token}` });
  }

  function token(
    changes: Record<string, unknown> = {},
    { alg = 'RS256', kid = 'k-1', signer = key }: { alg?: string; kid?: string; signer?: CryptoKey | Uint8Array } = {},
  ): Promise<string> {
    const exp = Math.floor(Date.now() / 1000) + 3600;
    return new SignJWT({ ...claims, iss: ISSUER, aud: AUDIENCE, exp, ...changes })
      .setProtectedHeader({ alg, kid })
      .sign(signer);
  }

  async function serveKeys(keys?: object[]): Promise<typeof jwks> {
    const published = keys ?? [{ ...(await exportJWK(publicKey)), kid: 'k-1', alg: 'RS256', use: 'sig' }];
    const state = { url: '', status: 200, hits: 0, hang: false };
    const server = createServer((_request, response) => {
      state.hits++;
      if (state.hang) return;
      response.writeHead(state.status).end(JSON.stringify({ keys: published }));
    });
    state.url = `http://127.0.0.1:${await listen(server)}/certs`;
    return state;
  }
});

function eventOf(data: unknown): object {
  return { specversion: '1.0', type: 'order.placed', source: 'shop', id: 'id-of-the-event', data };
}

function base64(payload: object): string {
  return Buffer.from(JSON.stringify(payload)).toString('base64');
}

function wrapped(data: object, attributes?: object): object {
  return {
    message: {
      data: base64(data),
      messageId: 'm-1',
      publishTime: '2026-01-31T18:30:00Z',
      ...(attributes && { attributes }),
    },
    subscription: 'projects/my-project/subscriptions/orders',
  };
}

async function serve(settings?: Parameters<typeof createPushTokenVerifier>[0]): Promise<number> {
  const app = Fastify({
    logger: { level: 'warn', stream: { write: (line: string) => logged.push(JSON.parse(line) as Logged) } },
  });
  void app.register(pubsubPush, {
    verifyPushToken: settings && createPushTokenVerifier(settings, () => new Date()),
    recordSignal: async (id) => {
      if (failing) throw new Error('the database is away');
      recorded.push(id);
      return id === 'known' ? 'known' : 'recorded';
    },
    observe: logJourneys(app.log),
    authenticate: () => {},
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  closing.push(() => {
    app.server.closeAllConnections();
    return app.close();
  });
  return (app.server.address() as AddressInfo).port;
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** node:http rather than fetch, which would correct the content types. */
function push(port: number, body: unknown, headers: OutgoingHttpHeaders = {}): Promise<Answer> {
  const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? Buffer.from(body) : JSON.stringify(body);
  const length = headers['transfer-encoding'] === undefined ? { 'content-length': Buffer.byteLength(bytes) } : {};
  const sent = { 'content-type': 'application/json', connection: 'keep-alive', ...length, ...headers };
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      port,
      host: '127.0.0.1',
      path: '/pubsub/push',
      method: 'POST',
      agent: false,
      headers: Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== undefined)),
    });
    request.on('error', reject).on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
    });
    request.end(bytes);
  });
}
