import { SignJWT } from 'jose';
import type { Pool } from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildApp, type AppDeps } from '../../../src/app.ts';
import { boundConnections } from '../../../src/http/bound-connections.ts';
import { databaseClock } from '../../../src/core/postgres/database-clock.ts';
import { PURPOSE, SESSION_S, sessionKey } from '../../../src/http/console/session-tokens.ts';
import { version } from '../../../src/version.ts';
import { OPERATOR_TOKEN, sendAsIs, type OperatorAnswer } from '../../support/ask-operator.ts';
import { OWN_PAGE, logIn, sendLogin } from '../../support/log-in.ts';
import { startSystem, type System } from '../../support/start-system.ts';

const OTHER_TOKEN = 'the-operators-next-token-of-a-test';
const UNAUTHORIZED = { status: 401, text: '{"error":"unauthorized"}' };

let system: System;
let urls: string[];

beforeAll(async () => {
  system = await startSystem({ env: { OPERATOR_TOKEN }, processes: 2 });
  urls = system.urls;
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
});
afterAll(() => system?.stop());

const ask = (
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
  at = urls[0],
): Promise<OperatorAnswer> => sendAsIs(at ?? '', path, { method, headers });
const withSession = (token: string): Record<string, string> => ({ cookie: `expediter_session=${token}` });
const tokenIn = (cookie: string): string => cookie.slice(cookie.indexOf('=') + 1);
const seconds = (): number => Math.floor(Date.now() / 1000);
const sign = (key: Uint8Array, end = seconds() + 60, audience = PURPOSE): Promise<string> =>
  new SignJWT().setProtectedHeader({ alg: 'HS256' }).setAudience(audience).setExpirationTime(end).sign(key);

describe('a login', () => {
  it('with the token gives a cookie that no script, no other site and no other path gets', async () => {
    const { status, headers, text } = await sendLogin(urls[0] ?? '', OPERATOR_TOKEN, {
      origin: 'https://expediter.example.com',
      ...OWN_PAGE,
    });
    expect([status, text]).toEqual([204, '']);
    const [pair, ...attributes] = (headers.get('set-cookie') ?? '').split('; ');
    expect(pair).toMatch(/^expediter_session=[\w-]+\.[\w-]+\.[\w-]+$/);
    expect(attributes.toSorted()).toEqual([
      'HttpOnly',
      `Max-Age=${SESSION_S}`,
      'Path=/console',
      'SameSite=Strict',
      'Secure',
    ]);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(SESSION_S).toBe(12 * 60 * 60);
  });

  it.each([
    ['another of the same length', OPERATOR_TOKEN.replace(/.$/, '!')],
    ['its beginning', OPERATOR_TOKEN.slice(0, -1)],
    ['more than it', `${OPERATOR_TOKEN}x`],
    ['an empty one', ''],
  ])('with %s is the same 401 as any, and sets nothing', async (_what, token) => {
    const answer = await sendLogin(urls[0] ?? '', token);
    expect(answer).toMatchObject(UNAUTHORIZED);
    expect(answer.headers.get('set-cookie')).toBeNull();
  });

  it.each<[string, string, Record<string, string>, number]>([
    ['without a token', '{}', {}, 400],
    ['with a token that is no text', '{"token":{"$ne":""}}', {}, 400],
    ['with no body', '', {}, 400],
    ['with what is no JSON', '{"token', {}, 400],
    [
      'as a form, which any page may send',
      `token=${OPERATOR_TOKEN}`,
      { 'content-type': 'application/x-www-form-urlencoded' },
      415,
    ],
    ['as text, which any page may send', `{"token":"${OPERATOR_TOKEN}"}`, { 'content-type': 'text/plain' }, 415],
    ['over 64 kB', JSON.stringify({ token: 'x'.repeat(70_000) }), {}, 413],
  ])('%s is refused', async (_what, body, headers, status) => {
    const answer = await sendAsIs(urls[0] ?? '', '/console/session', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...OWN_PAGE, ...headers },
      body,
    });
    expect(answer.status).toBe(status);
    expect(answer.headers.get('set-cookie')).toBeNull();
    expect(answer.text).not.toContain(OPERATOR_TOKEN);
  });

  it('is written down, and neither what was given nor the session is', async () => {
    const cookie = await logIn(urls[0] ?? '');
    await sendLogin(urls[0] ?? '', 'a-token-that-somebody-mistyped');
    const logged = system.logged.join('');
    expect(logged).toContain('"did":"log in"');
    expect(logged).toContain('"did":"refuse login"');
    for (const secret of [OPERATOR_TOKEN, tokenIn(cookie), 'a-token-that-somebody-mistyped']) {
      expect(logged).not.toContain(secret);
    }
  });
});

describe('the cookie is Secure', () => {
  const attributesAt = async (origin: string | undefined, url = urls[0] ?? ''): Promise<OperatorAnswer> =>
    sendLogin(url, OPERATOR_TOKEN, { ...OWN_PAGE, ...(origin !== undefined && { origin }) });
  const isSecure = ({ headers }: OperatorAnswer): boolean => headers.get('set-cookie')?.includes('; Secure') === true;

  it('unless the browser came by plain http to its own machine, where not every browser would keep it', async () => {
    for (const origin of ['http://127.0.0.1:8080', 'http://localhost:8080', 'http://[::1]:8080']) {
      const answer = await attributesAt(origin);
      expect([answer.status, isSecure(answer)], origin).toEqual([204, false]);
    }
    for (const origin of ['https://127.0.0.1:8080', 'https://localhost', undefined]) {
      const answer = await attributesAt(origin);
      expect([answer.status, isSecure(answer)], origin).toEqual([204, true]);
    }
  });

  it('so plain http from elsewhere is told to come by https, before a token is looked at', async () => {
    for (const origin of [
      'http://expediter.example.com',
      'http://127.0.0.1.example.com',
      'http://localhost.example.com',
    ]) {
      const answer = await attributesAt(origin);
      expect([answer.status, answer.text], origin).toEqual([403, expect.stringContaining('https')]);
      expect(answer.headers.get('set-cookie')).toBeNull();
    }
  });

  it('where the browser says by which it came in a way that cannot be read', async () => {
    for (const origin of ['http://', 'http://[', 'null']) {
      const answer = await attributesAt(origin);
      expect([answer.status, isSecure(answer)], origin).toEqual([204, true]);
    }
  });

  it('unless PUBLIC_URL says that plain http it is', async () => {
    const plain = await startSystem({ env: { OPERATOR_TOKEN, PUBLIC_URL: 'http://Kitchen.local:8080/' } });
    try {
      const url = plain.urls[0] ?? '';
      expect(isSecure(await attributesAt('http://kitchen.local:8080', url))).toBe(false);
      expect((await attributesAt('http://kitchen.local', url)).status).toBe(403);
      expect(isSecure(await attributesAt('https://kitchen.local:8080', url))).toBe(true);
    } finally {
      await plain.stop();
    }
  });
});

describe('a session', () => {
  it('opens the API at every process, and says until when it holds', async () => {
    const cookie = await logIn(urls[0] ?? '');
    for (const at of urls) {
      expect(await ask('/console/api/locations', { cookie, ...OWN_PAGE }, 'GET', at)).toMatchObject({
        status: 200,
        body: { locations: [{ locationId: 'club-1' }] },
      });
      const { body } = await ask('/console/session', { cookie }, 'GET', at);
      expect(body).toEqual({ until: expect.any(String), version });
      const left = Date.parse(String(body['until'])) / 1000 - seconds();
      expect(Math.abs(left - SESSION_S)).toBeLessThan(10);
    }
  });

  it('may do what the token may', async () => {
    const cookie = await logIn(urls[0] ?? '');
    const pause = await ask('/console/api/locations/club-1/pause', { cookie, ...OWN_PAGE }, 'POST');
    expect(pause).toMatchObject({ status: 200, body: { paused: true } });
    const resume = await ask('/console/api/locations/club-1/resume', { cookie, ...OWN_PAGE }, 'POST');
    expect(resume).toMatchObject({ status: 200, body: { paused: false } });
  });

  it.each<[string, () => Record<string, string> | Promise<Record<string, string>>]>([
    ['none', () => ({})],
    ['an empty one', () => withSession('')],
    ['what is no token', () => withSession('x'.repeat(200))],
    ["the operator's token itself", () => withSession(OPERATOR_TOKEN)],
    ['one that has ended', async () => withSession(await sign(sessionKey(OPERATOR_TOKEN), seconds() - 1))],
    [
      'one without an end',
      async () =>
        withSession(
          await new SignJWT()
            .setProtectedHeader({ alg: 'HS256' })
            .setAudience(PURPOSE)
            .sign(sessionKey(OPERATOR_TOKEN)),
        ),
    ],
    [
      'one for another purpose',
      async () => withSession(await sign(sessionKey(OPERATOR_TOKEN), seconds() + 60, 'another')),
    ],
    ["one of another operator's token", async () => withSession(await sign(sessionKey(OTHER_TOKEN)))],
    [
      'one that is signed with the token as it is',
      async () => withSession(await sign(new TextEncoder().encode(OPERATOR_TOKEN))),
    ],
    [
      'one that says it needs no signature',
      async () => {
        const [, payload] = tokenIn(await logIn(urls[0] ?? '')).split('.');
        return withSession(`${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`);
      },
    ],
    [
      'one whose end was moved',
      async () => {
        const [head, , signature] = tokenIn(await logIn(urls[0] ?? '')).split('.');
        const payload = Buffer.from(JSON.stringify({ aud: PURPOSE, exp: seconds() + 1e6 })).toString('base64url');
        return withSession(`${head}.${payload}.${signature}`);
      },
    ],
    ['the token as Bearer', () => ({ authorization: `Bearer ${OPERATOR_TOKEN}` })],
  ])('that is %s is the same 401 everywhere', async (_what, given) => {
    const headers = { ...(await given()), ...OWN_PAGE };
    for (const [path, method] of [
      ['/console/session', 'GET'],
      ['/console/api/locations', 'GET'],
      ['/console/api/orders/any', 'GET'],
      ['/console/api/orders/any/live', 'GET'],
      ['/console/api/locations/club-1/pause', 'POST'],
      ['/console/api/webhooks/replay', 'POST'],
    ] as const) {
      expect(await ask(path, headers, method), path).toMatchObject(UNAUTHORIZED);
    }
    expect((await system.query('SELECT paused_at FROM locations'))[0]).toEqual({ paused_at: null });
  });

  it('opens nothing that is for the token', async () => {
    const cookie = await logIn(urls[0] ?? '');
    for (const path of ['/orders', '/locations', '/webhooks', '/metrics', '/docs', '/openapi.json']) {
      expect((await ask(path, { cookie, ...OWN_PAGE })).status, path).toBe(401);
    }
    for (const path of [
      '/console/api/metrics',
      '/console/api/docs',
      '/console/api/openapi.json',
      '/console/api/',
      '/console/api/nothing',
    ]) {
      const answer = await ask(path, { cookie, ...OWN_PAGE });
      expect([answer.status, answer.headers.get('content-type')], path).toEqual([
        404,
        'application/json; charset=utf-8',
      ]);
    }
  });

  it('ends its event streams with itself', async () => {
    const headers = { ...withSession(await sign(sessionKey(OPERATOR_TOKEN), seconds() + 3)), ...OWN_PAGE };
    await expect(ask('/console/api/live', headers)).rejects.toThrow('aborted');
  });

  it('is forgotten by the browser at a logout', async () => {
    const cookie = await logIn(urls[0] ?? '');
    const answer = await ask('/console/session', { cookie, ...OWN_PAGE }, 'DELETE');
    expect([answer.status, answer.text]).toEqual([204, '']);
    expect(answer.headers.get('set-cookie')).toMatch(
      /^expediter_session=; Max-Age=0; Path=\/console; Expires=Thu, 01 Jan 1970/,
    );
  });

  it('ends, like all others, when the operator has another token', async () => {
    const cookie = await logIn(urls[0] ?? '');
    const next = await startSystem({ env: { OPERATOR_TOKEN: OTHER_TOKEN }, databaseUrl: system.databaseUrl });
    try {
      const at = next.urls[0];
      expect(await ask('/console/api/locations', { cookie, ...OWN_PAGE }, 'GET', at)).toMatchObject(UNAUTHORIZED);
      const anew = await logIn(at ?? '', OTHER_TOKEN);
      expect((await ask('/console/api/locations', { cookie: anew, ...OWN_PAGE }, 'GET', at)).status).toBe(200);
      expect(await ask('/console/api/locations', { cookie: anew, ...OWN_PAGE })).toMatchObject(UNAUTHORIZED);
    } finally {
      await next.stop();
    }
  });
});

describe('a request from another page', () => {
  const REFUSED: [string, Record<string, string>][] = [
    ['from another site', { 'sec-fetch-site': 'cross-site' }],
    ['from another host of the same site, whose requests carry the cookie', { 'sec-fetch-site': 'same-site' }],
    ['from another site that claims our Origin', { 'sec-fetch-site': 'cross-site', origin: 'http://expediter.test' }],
    ['by an Origin that is not ours', { origin: 'http://evil.example.com' }],
    ['by an Origin that begins like ours', { origin: 'http://expediter.test.example.com' }],
    ['by our host at another port', { origin: 'http://expediter.test:81' }],
    ['by an Origin that is hidden', { origin: 'null' }],
  ];

  it.each<[string, Record<string, string>]>([
    ...REFUSED,
    ['that no page made', { 'sec-fetch-site': 'none' }],
    ['that no browser made, but with a cookie', {}],
  ])('%s changes nothing, in or out', async (_what, said) => {
    const headers = { cookie: await logIn(urls[0] ?? ''), host: 'expediter.test', ...said };
    for (const [path, method] of [
      ['/console/api/locations/club-1/pause', 'POST'],
      ['/console/session', 'DELETE'],
    ] as const) {
      const answer = await ask(path, headers, method);
      expect(answer, path).toMatchObject({
        status: 403,
        body: { error: expect.stringContaining("console's own page") },
      });
      expect(answer.headers.get('set-cookie')).toBeNull();
    }
    expect((await sendLogin(urls[0] ?? '', OPERATOR_TOKEN, { host: 'expediter.test', ...said })).status).toBe(403);
    expect((await system.query('SELECT paused_at FROM locations'))[0]).toEqual({ paused_at: null });
  });

  it.each(REFUSED)('%s reads nothing', async (_what, said) => {
    const headers = { cookie: await logIn(urls[0] ?? ''), host: 'expediter.test', ...said };
    for (const path of ['/console/api/locations', '/console/session']) {
      expect((await ask(path, headers)).status, path).toBe(403);
    }
  });

  it('is told apart from our own by the Origin alone, where the browser says no more', async () => {
    const cookie = await logIn(urls[0] ?? '');
    for (const headers of [
      { origin: 'http://expediter.test', host: 'expediter.test' },
      { origin: 'https://expediter.test', host: 'expediter.test' },
      { origin: urls[0] ?? '' },
    ]) {
      expect((await ask('/console/api/locations/club-1/resume', { cookie, ...headers }, 'POST')).status).toBe(200);
    }
  });

  it('is told apart where the load balancer sends another Host, by PUBLIC_URL', async () => {
    const behind = await startSystem({ env: { OPERATOR_TOKEN, PUBLIC_URL: 'https://expediter.example.com/' } });
    try {
      const url = behind.urls[0] ?? '';
      const login = (origin: string): Promise<OperatorAnswer> => sendLogin(url, OPERATOR_TOKEN, { origin });
      expect((await login('https://expediter.example.com')).status).toBe(204);
      expect((await login('https://example.com')).status).toBe(403);
      expect((await login('http://expediter.example.com')).status).toBe(403);
    } finally {
      await behind.stop();
    }
  });
});

describe('before Postgres has told the time', () => {
  it('a login is asked to come again', async () => {
    const app = buildApp({
      log: pino({ level: 'silent' }),
      connections: boundConnections(1, console),
      operator: {
        token: OPERATOR_TOKEN,
        translating: { publicUrl: '' },
        now: databaseClock({} as Pool).now,
      },
    } as unknown as AppDeps);
    const answer = await app.inject({
      method: 'POST',
      url: '/console/session',
      headers: OWN_PAGE,
      payload: { token: OPERATOR_TOKEN },
    });
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '2']);
    await app.close();
  });
});
