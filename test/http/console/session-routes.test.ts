import { ROLES } from '../../../src/core/operators/operator.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { pino } from 'pino';
import { buildListener } from '../../../src/server/listener.ts';
import { digest } from '../../../src/core/operators/find-operator.ts';
import { deleteOld } from '../../../src/core/retention/retention-rules.ts';
import { SESSION_S } from '../../../src/core/operators/operator-sessions.ts';
import { databaseClock } from '../../../src/core/postgres/database-clock.ts';
import { boundConnections } from '../../../src/http/bound-connections.ts';
import { identifier } from '../../../src/http/operator/identify.ts';
import { version } from '../../../src/core/domain/version.ts';
import { OPERATOR_TOKEN, sendAsIs, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { BEHIND_US, fromElsewhere } from '../../../world/network/from-elsewhere.ts';
import { OWN_PAGE, logIn, nameToken, sendLogin } from '../../../world/system/log-in.ts';
import { stageOfTest, startStage, type Stage } from '../../support/operator-stage.ts';
import { until } from '../../../world/processes/until.ts';

const OTHER_TOKEN = 'lnVSbW8ek7j0D0AVWeWxc24RGbVf2ispXwkKNItDzmM';
const UNAUTHORIZED = { status: 401, body: { type: 'urn:expediter:problem:not-authenticated', status: 401 } };
const UNKNOWN = 'x'.repeat(43);

let stage: Stage;
/** Another process. */
let other: Stage;

beforeAll(async () => {
  stage = await startStage({ env: { OPERATOR_TOKEN, ...BEHIND_US } });
  other = await startStage({ env: stage.env, databaseUrl: stage.databaseUrl });
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
});
afterAll(() => Promise.all([other?.stop(), stage?.stop()]));

const ask = (path: string, headers: Record<string, string> = {}, method = 'GET', at = stage): Promise<OperatorAnswer> =>
  sendAsIs(at.app, path, { method, headers: { ...fromElsewhere(), ...headers } });
const withSession = (token: string): Record<string, string> => ({ cookie: `expediter_session=${token}` });
const valueOf = (cookie: string): string => cookie.slice(cookie.indexOf('=') + 1);
const seconds = (): number => Math.floor(Date.now() / 1000);

/** A named token. */
const named = (name: string, role = 'viewer'): Promise<string> => nameToken(stage, name, [role]);
/** What the audit has of somebody, oldest first. */
const actsOf = (name: string): Promise<Record<string, unknown>[]> =>
  stage.query(
    `SELECT a.action, a.subject, a.source, o.outcome FROM audit a LEFT JOIN audit_outcomes o USING (audit_id)
     WHERE a.actor_name = $1 ORDER BY a.audit_id`,
    [name],
  );
const sessionsOf = async (cookie: string, at = stage): Promise<Record<string, unknown>[]> =>
  (await ask('/console/sessions', { cookie, ...OWN_PAGE }, 'GET', at)).body['sessions'] as Record<string, unknown>[];
/** A session of which something was changed since. */
async function changed(assignment: string): Promise<Record<string, string>> {
  const cookie = await logIn(stage.app);
  await stage.query(`UPDATE operator_sessions SET ${assignment} WHERE sha256 = $1`, [digest(valueOf(cookie))]);
  return { cookie };
}
/** Whether a cookie opens the API. */
const opens = async (cookie: string, at = stage): Promise<boolean> =>
  (await ask('/console/api/locations', { cookie, ...OWN_PAGE }, 'GET', at)).status === 200;

describe('a sign-in with OPERATOR_TOKEN', () => {
  it('sets, for the right token, a cookie that scripts, other sites and other hosts cannot read', async () => {
    const { status, headers, text } = await sendLogin(stage.app, OPERATOR_TOKEN, {
      origin: 'https://expediter.example.com',
      ...OWN_PAGE,
    });
    expect([status, text]).toEqual([204, '']);
    const [pair, ...attributes] = (headers.get('set-cookie') ?? '').split('; ');
    expect(pair).toMatch(/^__Host-expediter_session=[\w-]{43}$/);
    expect(attributes.toSorted()).toEqual(['HttpOnly', `Max-Age=${SESSION_S}`, 'Path=/', 'SameSite=Strict', 'Secure']);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(SESSION_S).toBe(12 * 60 * 60);
  });

  it.each([
    ['another token of the same length', OPERATOR_TOKEN.replace(/.$/, '!')],
    ['only the beginning of the token', OPERATOR_TOKEN.slice(0, -1)],
    ['the token and another letter', `${OPERATOR_TOKEN}x`],
    ['an empty token', ''],
  ])('is answered 401 without a cookie for %s', async (_what, token) => {
    const answer = await sendLogin(stage.app, token);
    expect(answer).toMatchObject(UNAUTHORIZED);
    expect(answer.headers.get('set-cookie')).toBeNull();
  });

  it.each<[string, string, Record<string, string>, number]>([
    ['without a token', '{}', {}, 400],
    ['with a token that is not a text', '{"token":{"$ne":""}}', {}, 400],
    ['without a body', '', {}, 400],
    ['with a body that is not JSON', '{"token', {}, 400],
    [
      'as a form, which any page may send',
      `token=${OPERATOR_TOKEN}`,
      { 'content-type': 'application/x-www-form-urlencoded' },
      415,
    ],
    ['as text, which any page may send', `{"token":"${OPERATOR_TOKEN}"}`, { 'content-type': 'text/plain' }, 415],
    ['over 64 kB', JSON.stringify({ token: 'x'.repeat(70_000) }), {}, 413],
  ])('is refused %s', async (_what, body, headers, status) => {
    const answer = await sendAsIs(stage.app, '/console/session', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...OWN_PAGE, ...headers },
      body,
    });
    expect(answer.status).toBe(status);
    expect(answer.headers.get('set-cookie')).toBeNull();
    expect(answer.text).not.toContain(OPERATOR_TOKEN);
  });

  it("is in the audit without the token and the session's cookie", async () => {
    const cookie = await logIn(stage.app);
    await sendLogin(stage.app, 'a-token-that-somebody-mistyped');
    expect(await actsOf('OPERATOR_TOKEN')).toContainEqual({
      action: 'sign in',
      subject: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      source: expect.stringMatching(/^10\./) as string,
      outcome: 'done',
    });
    const written = stage.logged.join('') + JSON.stringify(await stage.query('SELECT * FROM audit, operator_sessions'));
    for (const secret of [OPERATOR_TOKEN, valueOf(cookie), 'a-token-that-somebody-mistyped']) {
      expect(written).not.toContain(secret);
    }
  });
});

describe("the session's cookie", () => {
  const attributesAt = (origin: string | undefined, at = stage): Promise<OperatorAnswer> =>
    sendLogin(at.app, OPERATOR_TOKEN, { ...OWN_PAGE, ...(origin !== undefined && { origin }) });
  const isSecure = ({ headers }: OperatorAnswer): boolean => {
    const set = headers.get('set-cookie') ?? '';
    expect(set.startsWith('__Host-')).toBe(set.includes('; Secure'));
    return set.includes('; Secure');
  };

  it('is Secure unless the browser uses plain http on this machine', async () => {
    for (const origin of ['http://127.0.0.1:8080', 'http://localhost:8080', 'http://[::1]:8080']) {
      const answer = await attributesAt(origin);
      expect([answer.status, isSecure(answer)], origin).toEqual([204, false]);
    }
    for (const origin of ['https://127.0.0.1:8080', 'https://localhost', undefined]) {
      const answer = await attributesAt(origin);
      expect([answer.status, isSecure(answer)], origin).toEqual([204, true]);
    }
  });

  it('is not set over plain http from another machine: the answer is 403 with a hint to use https', async () => {
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

  it('is Secure if the Origin of the browser cannot be read', async () => {
    for (const origin of ['http://', 'http://[', 'null']) {
      const answer = await attributesAt(origin);
      expect([answer.status, isSecure(answer)], origin).toEqual([204, true]);
    }
  });

  it('is not Secure if CONSOLE_URL, or without it PUBLIC_URL, is plain http', async () => {
    for (const urls of [
      { PUBLIC_URL: 'http://Kitchen.local:8080/' },
      { PUBLIC_URL: 'https://expediter.example.com', CONSOLE_URL: 'http://Kitchen.local:8080/' },
    ]) {
      const plain = await stageOfTest({ env: { OPERATOR_TOKEN, ...urls }, databaseUrl: stage.databaseUrl });
      const answer = await attributesAt('http://kitchen.local:8080', plain);
      expect(isSecure(answer)).toBe(false);
      const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
      const host = 'kitchen.local:8080';
      expect((await ask('/console/session', { cookie, host, ...OWN_PAGE }, 'GET', plain)).status).toBe(200);
      expect((await attributesAt('http://kitchen.local', plain)).status).toBe(403);
      expect(isSecure(await attributesAt('https://kitchen.local:8080', plain))).toBe(true);
    }
  });

  it('is accepted without the prefix __Host- only on this machine', async () => {
    const cookie = await logIn(stage.app);
    const secure = `__Host-${cookie}`;
    const statusAt = async (given: string, host: string): Promise<number> =>
      (await ask('/console/session', { cookie: given, host, ...OWN_PAGE })).status;
    for (const host of ['127.0.0.1:8081', 'localhost', '[::1]:8081']) expect(await statusAt(cookie, host)).toBe(200);
    for (const host of ['expediter.example.com', 'localhost.example.com']) {
      expect(await statusAt(cookie, host), host).toBe(401);
      expect(await statusAt(secure, host), host).toBe(200);
    }
  });
});

describe('several session cookies in a request', () => {
  it.each([
    ["another service's expired session", () => `expediter_session=${UNKNOWN}`],
    ["another service's nonsense", () => 'expediter_session=%%; expediter_session=; expediter_session'],
    ["another service's long text", () => Array.from({ length: 50 }, (_, i) => `expediter_session=${i}`).join('; ')],
  ])('open the valid session next to %s', async (_what, theirs) => {
    const ours = await logIn(stage.app);
    for (const cookie of [`${theirs()}; ${ours}`, `${ours}; ${theirs()}`]) {
      expect(await opens(cookie), cookie).toBe(true);
      expect((await ask('/console/session', { cookie })).status).toBe(200);
    }
    const out = await ask('/console/session', { cookie: `${theirs()}; ${ours}`, ...OWN_PAGE }, 'DELETE');
    expect(out.status).toBe(204);
    expect(await opens(ours)).toBe(false);
  });

  it('open the session of the cookie with the prefix __Host-', async () => {
    const [ours, theirs] = [await logIn(stage.app, await named('ours')), await logIn(stage.app)];
    for (const cookie of [`${theirs}; __Host-${ours}`, `__Host-${ours}; ${theirs}`]) {
      expect((await ask('/console/session', { cookie })).body).toMatchObject({ name: 'ours' });
    }
  });
});

describe('a session', () => {
  it('opens the API at every process', async () => {
    const cookie = await logIn(stage.app);
    for (const at of [stage, other]) {
      expect(await ask('/console/api/locations', { cookie, ...OWN_PAGE }, 'GET', at)).toMatchObject({
        status: 200,
        body: { locations: [{ locationId: 'club-1' }] },
      });
      const { body } = await ask('/console/session', { cookie }, 'GET', at);
      expect(body).toEqual({
        kind: 'operator_token',
        name: 'OPERATOR_TOKEN',
        rights: [{ roles: [...ROLES], locations: null, locationGroups: [] }],
        until: expect.any(String),
        openedAt: expect.any(String),
        version,
        notifies: [],
      });
      const left = Date.parse(String(body['until'])) / 1000 - seconds();
      expect(Math.abs(left - SESSION_S)).toBeLessThan(10);
    }
  });

  it.each<[string, () => Record<string, string> | Promise<Record<string, string>>]>([
    ['missing', () => ({})],
    ['empty', () => withSession('')],
    ['a text that is not a token', () => withSession('x'.repeat(200))],
    ["the operator's token itself", () => withSession(OPERATOR_TOKEN)],
    ['an invented one', () => withSession(UNKNOWN)],
    ['unused for an hour', () => changed(`last_seen_at = now() - interval '1 hour'`)],
    ['already expired', () => changed('expires_at = now()')],
    ['of another OPERATOR_TOKEN', () => changed(`operator_token_sha256 = sha256('a third')`)],
    [
      'of a revoked token',
      async () => {
        const cookie = await logIn(stage.app, await named('revoked'));
        await stage.query(`UPDATE operator_tokens SET revoked_at = now() WHERE name = 'revoked'`);
        return { cookie };
      },
    ],
    [
      'of a person without a role',
      async () => {
        await stage.query(
          `INSERT INTO operator_sessions (session_id, sha256, kind, actor_id, name, email, expires_at)
           VALUES ($1, $2, 'person', 'issuer ada', 'Ada', 'ada@example.com', now() + interval '1 h')`,
          [randomUUID(), digest('y'.repeat(43))],
        );
        return withSession('y'.repeat(43));
      },
    ],
    ['replaced by a Bearer token', () => ({ authorization: `Bearer ${OPERATOR_TOKEN}` })],
  ])('is answered 401 at every route if the cookie is %s', async (_what, given) => {
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
    expect((await stage.query('SELECT paused_at FROM locations'))[0]).toEqual({ paused_at: null });
  });

  it('is answered 401 at the routes for tokens', async () => {
    const cookie = await logIn(stage.app);
    for (const path of ['/v1/orders', '/v1/locations', '/v1/webhooks', '/metrics', '/openapi.json']) {
      expect((await ask(path, { cookie, ...OWN_PAGE })).status, path).toBe(401);
    }
    for (const path of ['/console/api/metrics', '/console/api/openapi.json', '/console/api/', '/console/api/nothing']) {
      const answer = await ask(path, { cookie, ...OWN_PAGE });
      expect([answer.status, answer.headers.get('content-type')], path).toEqual([
        404,
        'application/problem+json; charset=utf-8',
      ]);
    }
  });

  it('ends with a sign-out at every process', async () => {
    const cookie = await logIn(stage.app, await named('leaver'));
    expect(await opens(cookie, other)).toBe(true);
    const answer = await ask('/console/session', { cookie, ...OWN_PAGE }, 'DELETE');
    expect([answer.status, answer.text]).toEqual([204, '']);
    expect(answer.headers.get('set-cookie')).toMatch(
      /^expediter_session=; Max-Age=0; Path=\/; .*__Host-expediter_session=; Max-Age=0; Path=\/; .*Secure/,
    );
    expect(await opens(cookie)).toBe(false);
    other.invalidateCache();
    expect(await opens(cookie, other)).toBe(false);
    const actions = (await actsOf('leaver')).map(({ action, outcome }) => [action, outcome]);
    expect(actions).toEqual([
      ['sign in', 'done'],
      ['sign out', 'done'],
    ]);
  });

  it('ends when OPERATOR_TOKEN changes', async () => {
    const cookie = await logIn(stage.app);
    const next = await stageOfTest({ env: { OPERATOR_TOKEN: OTHER_TOKEN }, databaseUrl: stage.databaseUrl });
    expect(await ask('/console/api/locations', { cookie, ...OWN_PAGE }, 'GET', next)).toMatchObject(UNAUTHORIZED);
    const anew = await logIn(next.app, OTHER_TOKEN);
    expect([await opens(anew, next), await opens(anew)]).toEqual([true, false]);
    expect(await sessionsOf(anew, next)).toHaveLength(1);
  });
});

describe('signing in again with a token', () => {
  it("opens another session and ends the browser's old session", async () => {
    const token = await named('again', 'admin');
    const old = await logIn(stage.app, token);
    await stage.query(`UPDATE operator_sessions SET signed_in_at = now() - interval '16 min' WHERE name = 'again'`);
    const revoke = `/console/api/operators/sessions/${randomUUID()}/revoke`;
    // At the process that has not looked at it yet.
    expect(await ask(revoke, { cookie: old, ...OWN_PAGE }, 'POST', other)).toMatchObject({
      status: 403,
      body: { cause: { code: 'sign_in_again', proof: true } },
    });
    expect((await ask('/console/api/operators/sessions', { cookie: old, ...OWN_PAGE }, 'GET', other)).status).toBe(200);
    const { headers } = await sendLogin(stage.app, token, { ...OWN_PAGE, origin: 'http://localhost', cookie: old });
    const anew = headers.get('set-cookie')?.split(';')[0] ?? '';
    expect(anew).not.toBe(old);
    expect(await opens(old)).toBe(false);
    expect((await ask(revoke, { cookie: anew, ...OWN_PAGE }, 'POST')).status).toBe(404);
    expect(await sessionsOf(anew)).toHaveLength(1);
  });

  it('is required for member data after an hour, even in a session in use', async () => {
    await stage.seedOrder({ serviceOrderId: 'order-1', locationId: 'club-1' });
    const token = await named('reads', 'member-data');
    const reads = async (cookie: string, query: string): Promise<OperatorAnswer> =>
      ask(`/console/api/orders/order-1?${query}`, { cookie, ...OWN_PAGE });
    const old = await logIn(stage.app, token);
    const age = (minutes: number): Promise<unknown> =>
      stage.query(`UPDATE operator_sessions SET created_at = now() - make_interval(mins => $1) WHERE name = 'reads'`, [
        minutes,
      ]);
    await age(59);
    expect((await reads(old, 'contents=true')).status).toBe(200);
    await age(61);
    stage.invalidateCache();
    expect(await reads(old, 'contents=true')).toMatchObject({
      status: 403,
      body: { cause: { code: 'sign_in_again', proof: false } },
    });
    expect((await reads(old, 'contents=false')).status).toBe(200);
    expect((await reads(await logIn(stage.app, token), 'contents=true')).status).toBe(200);
  });

  it('does not end the session if the token is wrong', async () => {
    const cookie = await logIn(stage.app);
    const wrong = await sendLogin(stage.app, `${OPERATOR_TOKEN}x`, { ...OWN_PAGE, origin: 'http://localhost', cookie });
    expect(wrong).toMatchObject(UNAUTHORIZED);
    expect(await opens(cookie)).toBe(true);
  });
});

describe('the sessions of an operator', () => {
  it('are listed only for that operator', async () => {
    const token = await named('lister');
    const [here, there] = [await logIn(stage.app, token), await logIn(other.app, token)];
    await logIn(stage.app, await named('another'));
    const listed = await sessionsOf(here);
    expect(new Set(listed.map(({ current }) => current))).toEqual(new Set([false, true]));
    expect(listed[0]).toEqual({
      sessionId: expect.any(String),
      kind: 'token',
      name: 'lister',
      createdAt: expect.any(String),
      signedInAt: expect.any(String),
      lastSeenAt: expect.any(String),
      expiresAt: expect.any(String),
      source: expect.stringMatching(/^10\./) as string,
      userAgent: 'lightMyRequest',
      current: expect.any(Boolean),
    });
    expect(await sessionsOf(there)).toHaveLength(2);
  });

  it('can be ended one by one, and only by that operator', async () => {
    const token = await named('owner');
    const [laptop, phone] = [await logIn(stage.app, token), await logIn(stage.app, token)];
    const anonymous = await logIn(stage.app, await named('anonymous', 'admin'));
    const other = (await sessionsOf(laptop)).find(({ current }) => current === false);
    const path = `/console/sessions/${String(other?.['sessionId'])}`;
    expect((await ask(path, { cookie: anonymous, ...OWN_PAGE }, 'DELETE')).status).toBe(404);
    expect(await opens(phone)).toBe(true);
    expect((await ask(path, { cookie: laptop, ...OWN_PAGE }, 'DELETE')).status).toBe(204);
    expect([await opens(laptop), await opens(phone)]).toEqual([true, false]);
    const refused = { action: 'revoke session', subject: other?.['sessionId'], outcome: 'refused' };
    expect(await actsOf('anonymous')).toContainEqual(expect.objectContaining(refused));
    expect((await ask('/console/sessions/no-uuid', { cookie: laptop, ...OWN_PAGE }, 'DELETE')).status).toBe(400);
    expect((await ask(`/console/sessions/${randomUUID()}`, { cookie: laptop }, 'DELETE')).status).toBe(403);
  });

  it('can be ended all at once, including the current one', async () => {
    const token = await named('everywhere');
    const cookies = [await logIn(stage.app, token), await logIn(stage.app, token)];
    const anonymous = await logIn(stage.app);
    const answer = await ask('/console/sessions', { cookie: cookies[0] ?? '', ...OWN_PAGE }, 'DELETE');
    expect([answer.status, answer.headers.get('set-cookie')]).toEqual([204, expect.stringContaining('Max-Age=0')]);
    for (const cookie of cookies) expect(await opens(cookie)).toBe(false);
    expect(await opens(anonymous)).toBe(true);
    expect((await actsOf('everywhere')).at(-1)).toMatchObject({ action: 'sign out everywhere', outcome: 'done' });
  });

  it.each([
    ['GET', '/console/sessions'],
    ['DELETE', '/console/sessions'],
    ['DELETE', `/console/sessions/${randomUUID()}`],
  ])('are answered 401 without a session: %s %s', async (method, path) => {
    expect(await ask(path, { ...withSession(UNKNOWN), ...OWN_PAGE }, method)).toMatchObject(UNAUTHORIZED);
  });
});

describe('the sessions of all operators', () => {
  it('are listed for an admin, who can end any of them', async () => {
    const admin = { authorization: `Bearer ${await named('admin of all', 'admin')}` };
    const lost = await logIn(stage.app, await named('lost laptop'));
    const find = async (): Promise<Record<string, unknown> | undefined> =>
      ((await ask('/v1/operators/sessions', admin)).body['sessions'] as Record<string, unknown>[]).find(
        ({ name }) => name === 'lost laptop',
      );
    const one = await find();
    expect(one).toMatchObject({ kind: 'token', source: expect.stringMatching(/^10\./) as string });
    expect(one).not.toHaveProperty('sha256');
    const path = `/v1/operators/sessions/${String(one?.['sessionId'])}/revoke`;
    for (const round of [1, 2]) {
      expect(await ask(path, admin, 'POST'), String(round)).toMatchObject({
        status: 200,
        body: { sessionId: one?.['sessionId'], revoked: true },
      });
    }
    expect(await opens(lost)).toBe(false);
    expect(await find()).toBeUndefined();
    expect((await actsOf('admin of all')).at(-1)).toMatchObject({
      action: 'revoke session',
      subject: one?.['sessionId'],
      outcome: 'done',
    });
    expect((await ask(`/v1/operators/sessions/${randomUUID()}/revoke`, admin, 'POST')).status).toBe(404);
  });
});

it('the last use of a session is stored once a minute', async () => {
  const cookie = await logIn(stage.app, await named('seen'));
  const seen = async (): Promise<unknown> =>
    (await stage.query(`SELECT now() - last_seen_at < '5 s' AS lately FROM operator_sessions WHERE name = 'seen'`))[0];
  const setSeen = (ago: string): Promise<unknown> =>
    stage.query(`UPDATE operator_sessions SET last_seen_at = now() - $1::interval WHERE name = 'seen'`, [ago]);
  await setSeen('50 s');
  expect(await opens(cookie, other)).toBe(true);
  expect(await seen()).toEqual({ lately: false });
  await setSeen('61 s');
  // No two processes have looked at it within two seconds.
  expect(await opens(cookie, stage)).toBe(true);
  await until(async () => ((await seen()) as { lately: boolean }).lately);
});

it('a session that ended 30 days ago is deleted', async () => {
  await logIn(stage.app, await named('old'));
  await logIn(stage.app, await named('young'));
  await stage.query(
    `UPDATE operator_sessions SET expires_at = now() - CASE name WHEN 'old' THEN interval '721 h' ELSE interval '719 h' END
     WHERE name IN ('old', 'young')`,
  );
  expect(await deleteOld(stage.pool, 'deletion of old sessions', 30 * 86_400)).toEqual([1]);
  expect(await stage.query(`SELECT name FROM operator_sessions WHERE name IN ('old', 'young')`)).toEqual([
    { name: 'young' },
  ]);
});

describe('a request of a browser', () => {
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
    ['that the address bar made', { 'sec-fetch-site': 'none' }],
    ['without any header of a browser', {}],
  ])('%s changes nothing: the answer is 403', async (_what, said) => {
    const headers = { cookie: await logIn(stage.app), host: 'expediter.test', ...said };
    const isRefusedAll = REFUSED.some(([, each]) => each === said);
    for (const path of ['/console/api/locations', '/console/session']) {
      if (isRefusedAll) expect((await ask(path, headers)).status, path).toBe(403);
    }
    for (const [path, method] of [
      ['/console/api/locations/club-1/pause', 'POST'],
      ['/console/session', 'DELETE'],
    ] as const) {
      const answer = await ask(path, headers, method);
      expect(answer, path).toMatchObject({
        status: 403,
        body: { detail: expect.stringContaining("console's own page") },
      });
      expect(answer.headers.get('set-cookie')).toBeNull();
    }
    expect((await sendLogin(stage.app, OPERATOR_TOKEN, { host: 'expediter.test', ...said })).status).toBe(403);
    expect((await stage.query('SELECT paused_at FROM locations'))[0]).toEqual({ paused_at: null });
  });

  it('is accepted by its Origin alone if it comes from our own page', async () => {
    const cookie = `__Host-${await logIn(stage.app)}`;
    for (const headers of [
      { origin: 'http://expediter.test', host: 'expediter.test' },
      { origin: 'https://expediter.test', host: 'expediter.test' },
      { origin: 'http://127.0.0.1:8080', host: '127.0.0.1:8080' },
    ]) {
      expect((await ask('/console/api/locations/club-1/resume', { cookie, ...headers }, 'POST')).status).toBe(200);
    }
  });

  it('is accepted if it comes from PUBLIC_URL and a load balancer changes the Host', async () => {
    const env = { OPERATOR_TOKEN, PUBLIC_URL: 'https://expediter.example.com/' };
    const behind = await stageOfTest({ env, databaseUrl: stage.databaseUrl });
    const login = (origin: string): Promise<OperatorAnswer> => sendLogin(behind.app, OPERATOR_TOKEN, { origin });
    expect((await login('https://expediter.example.com')).status).toBe(204);
    expect((await login('https://example.com')).status).toBe(403);
    expect((await login('http://expediter.example.com')).status).toBe(403);
  });
});

describe('before Postgres has given the time', () => {
  it('a sign-in to the console is answered 503 with Retry-After', async () => {
    const pool = { query: async () => Promise.reject(new Error('Connection terminated')) } as unknown as Pool;
    const { now } = databaseClock(pool);
    const app = buildListener({
      log: pino({ level: 'silent' }),
      connections: boundConnections(1, console),
      operator: {
        operatorToken: OPERATOR_TOKEN,
        identify: identifier(pool, OPERATOR_TOKEN, now),
        judge: async (_request: unknown, _door: unknown, _shown: unknown, judge: () => unknown) => judge(),
        translating: { publicUrl: '' },
        pool,
        now,
      },
    } as unknown as Parameters<typeof buildListener>[0]);
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
