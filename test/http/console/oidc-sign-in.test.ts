import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { BEHIND_US } from '../../support/from-elsewhere.ts';
import { sendAsIs, OPERATOR_TOKEN, type OperatorAnswer } from '../../support/ask-operator.ts';
import { OWN_PAGE, logIn } from '../../support/log-in.ts';
import { browse, goToCallback, locationOf, signInByOidc, type Browser } from '../../support/sign-in-by-oidc.ts';
import { startOidcProvider, type OidcProvider } from '../../support/start-oidc-provider.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';

let stage: Stage;
let oidc: OidcProvider;
/** Nobody listens there. */
const consoleUrl = 'http://127.0.0.1:8080';
const FROM_ISSUER = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };

beforeAll(async () => {
  oidc = await startOidcProvider({ consoleUrl });
  stage = await startStage({
    env: {
      ...oidc.env,
      ...BEHIND_US,
      OPERATOR_TOKEN,
      OIDC_ALLOWED_DOMAINS: 'Team.example',
    },
  });
  for (const club of ['club-1', 'club-2']) {
    await stage.addLocation(club, { ordersUrl: 'http://127.0.0.1:9/orders' });
    await stage.seedOrder({ serviceOrderId: `order-of-${club}`, locationId: club });
  }
});
beforeEach(async () => {
  await stage.query('DELETE FROM operator_grants');
  oidc.people.clear();
  oidc.people.set('ada', { email: 'Ada@team.example', email_verified: true, groups: ['team'] });
  oidc.people.set('kim', { email: 'kim@club.example', email_verified: true, groups: ['managers', 'others'] });
});
afterAll(async () => {
  await stage?.stop();
  await oidc?.stop();
});

const signIn: (login: string, about?: Parameters<typeof signInByOidc>[2]) => ReturnType<typeof signInByOidc> = (
  login,
  about,
) => signInByOidc(consoleUrl, login, { browser: browse({ [consoleUrl]: stage.app }), ...about });

async function grant(to: { email?: string; group?: string }, roles: string[], locations: string[] | null = null) {
  await stage.query(
    `INSERT INTO operator_grants (grant_id, email, group_name, roles, locations)
     VALUES (gen_random_uuid(), $1, $2, $3, $4)`,
    [to.email, to.group, roles, locations],
  );
}

const ask = (path: string, cookie: string, method = 'GET'): Promise<OperatorAnswer> =>
  sendAsIs(stage.app, path, { method, headers: { cookie, ...OWN_PAGE } });

async function newestAction(): Promise<Record<string, unknown> | undefined> {
  const [action] = await stage.query(
    `SELECT actor_kind, actor_id, actor_name, action, outcome, after FROM audit LEFT JOIN audit_outcomes USING (audit_id)
     ORDER BY audit_id DESC LIMIT 1`,
  );
  return action;
}

describe('a person', () => {
  it('signs in, goes on where they wanted to, and is whom the audit names', async () => {
    await grant({ email: 'ada@team.example' }, ['viewer', 'operator']);
    const { to, cookie } = await signIn('ada', { query: '?to=/console/orders%3Fneed%3Dattention' });
    expect(to).toBe('/console/orders?need=attention');
    const { body } = await ask('/console/session', cookie);
    expect(body).toMatchObject({
      kind: 'person',
      name: 'ada@team.example',
      rights: [{ roles: ['viewer', 'operator'], locations: null }],
    });
    const ada = { actor_kind: 'person', actor_id: `${oidc.issuer} ada`, actor_name: 'ada@team.example' };
    expect(await newestAction()).toMatchObject({ ...ada, action: 'sign in', outcome: 'done' });
    expect((await ask('/console/api/locations/club-1/pause', cookie, 'POST')).status).toBe(200);
    expect(await newestAction()).toMatchObject({ ...ada, action: 'pause', outcome: 'done' });
    await ask('/console/api/locations/club-1/resume', cookie, 'POST');
  });

  it('may what their address and each of their groups may, and no more', async () => {
    await grant({ group: 'managers' }, ['viewer'], ['club-1']);
    await grant({ group: 'team' }, ['operator']);
    const kim = await signIn('kim');
    expect((await ask('/console/api/locations/club-1', kim.cookie)).status).toBe(200);
    expect((await ask('/console/api/locations/club-2', kim.cookie)).status).toBe(404);
    expect((await ask('/console/api/orders/order-of-club-2', kim.cookie)).status).toBe(404);
    expect((await ask('/console/api/locations/club-1/pause', kim.cookie, 'POST')).body).toMatchObject({
      cause: { code: 'role_missing', roles: ['operator'] },
    });
    const ada = await signIn('ada');
    expect((await ask('/console/api/locations/club-2', ada.cookie)).status).toBe(200);
  });

  it('may no more after a grant is taken away, and more after one is given', async () => {
    await grant({ group: 'managers' }, ['viewer'], ['club-1']);
    const { cookie } = await signIn('kim');
    await grant({ email: 'kim@club.example' }, ['viewer'], ['club-2']);
    stage.invalidateCache();
    expect((await ask('/console/api/locations/club-2', cookie)).status).toBe(200);
    await stage.query('DELETE FROM operator_grants');
    stage.invalidateCache();
    expect((await ask('/console/api/locations/club-1', cookie)).status).toBe(401);
  });

  it.each([
    ['of no allowed domain or group', 'eve', { email: 'eve@evil.example', email_verified: true }, 'not_allowed'],
    ['whose address nobody verified', 'eve', { email: 'ada@team.example', email_verified: false }, 'not_allowed'],
    [
      'whose address is said to be verified in words',
      'eve',
      { email: 'ada@team.example', email_verified: 'true' },
      'not_allowed',
    ],
    [
      'of a domain that ends like an allowed one',
      'eve',
      { email: 'a@x.team.example', email_verified: true },
      'not_allowed',
    ],
    [
      'with two domains in the address',
      'eve',
      { email: 'a@team.example@evil.example', email_verified: true },
      'not_allowed',
    ],
    ['with groups that are no list of names', 'eve', { groups: [{ name: 'team' }, 7] }, 'not_allowed'],
    ['who was given nothing', 'eve', { email: 'Eve@team.example', email_verified: true }, 'no_role'],
    [
      'in a group alone whose address has a grant, and is not verified',
      'eve',
      { email: 'ada@team.example', groups: ['team'] },
      'no_role',
    ],
  ])('%s is refused, and the audit says who and why', async (_what, login, claims, problem) => {
    await grant({ email: 'ada@team.example' }, ['admin']);
    oidc.people.set(login, { preferred_username: 'eve', ...claims });
    const { to, cookie } = await signIn(login);
    expect({ to, cookie }).toEqual({ to: `/console/?problem=${problem}`, cookie: '' });
    const isKnown = 'email_verified' in claims && claims.email_verified === true;
    expect(await newestAction()).toMatchObject({
      actor_id: `${oidc.issuer} ${login}`,
      actor_name: isKnown ? claims.email.toLowerCase() : `eve (${login})`,
      action: 'sign in',
      outcome: 'refused',
      after: problem,
    });
  });

  it('who was given nothing is written down some times in an hour, and refused each time', async () => {
    oidc.people.set('mallory', { preferred_username: 'mallory', email: 'm@team.example', email_verified: true });
    for (let nth = 0; nth < 35; nth += 1) expect((await signIn('mallory')).to).toBe('/console/?problem=no_role');
    const rows = await stage.query(`SELECT FROM audit WHERE actor_name = 'm@team.example'`);
    expect(rows.length).toBe(30);
  });

  it('who refuses to sign in is told that it failed', async () => {
    const { to, cookie } = await signIn('nobody');
    expect({ to, cookie }).toEqual({ to: '/console/?problem=failed', cookie: '' });
  });

  it('goes to the first page from where they cannot have wanted to go', async () => {
    await grant({ group: 'team' }, ['viewer']);
    for (const [to, goes] of [
      ['//evil.example/console', '/console/'],
      ['https://evil.example/console/', '/console/'],
      ['/console/../evil', '/console/'],
      ['/console/%2e%2e/evil', '/console/'],
      ['/consoles', '/console/'],
      ['/console@evil.example', '/console/'],
      ['/\\evil.example', '/console/'],
      ['/console/\\..\\..\\evil', '/console/'],
      ['/console/\n/evil', '/console/'],
      ['/console/\r\nset-cookie: a=b', '/console/'],
      ['\t//evil.example', '/console/'],
      [`/console/${'x'.repeat(2_000)}`, '/console/'],
      ['/console/orders/a%2Fb?x=//y#z', '/console/orders/a%2Fb?x=//y'],
    ]) {
      const query = `?to=${encodeURIComponent(to ?? '')}`;
      expect((await signIn('ada', { query })).to, to).toBe(goes);
    }
  });
});

describe('the way back', () => {
  let browser: Browser;
  beforeEach(async () => {
    await grant({ group: 'team' }, ['viewer']);
    browser = browse({ [consoleUrl]: stage.app });
  });
  const open = async (url: string): Promise<string> => {
    const answer = await browser.get(url, FROM_ISSUER);
    return locationOf(answer, url).slice(consoleUrl.length);
  };
  const sessions = (): Promise<Record<string, unknown>[]> => stage.query('SELECT 1 FROM operator_sessions');

  it('is the one route that another site may open', async () => {
    for (const site of ['cross-site', 'same-site']) {
      const headers = { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate' };
      for (const path of [
        '/console/session',
        '/console/session/oidc',
        '/console/session/ways',
        '/console/api/orders',
      ]) {
        expect((await sendAsIs(stage.app, path, { headers })).status, path).toBe(403);
      }
    }
    for (const method of ['POST', 'HEAD', 'DELETE']) {
      expect(
        (await sendAsIs(stage.app, '/console/session/callback', { method, headers: FROM_ISSUER })).status,
      ).not.toBe(303);
    }
    const answer = await sendAsIs(stage.app, '/console/session/callback', { headers: FROM_ISSUER });
    expect(answer.status).toBe(303);
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  it('ends nowhere without the cookie of the way there', async () => {
    const callback = await goToCallback(browser, consoleUrl, 'ada');
    browser.cookies.get(consoleUrl)?.clear();
    const before = await sessions();
    expect(await open(callback)).toBe('/console/?problem=expired');
    expect(await sessions()).toEqual(before);
  });

  it('ends nowhere with what somebody wrote into the cookie', async () => {
    const callback = await goToCallback(browser, consoleUrl, 'ada');
    const kept = browser.cookies.get(consoleUrl);
    kept?.set('expediter_sign_in', `${kept.get('expediter_sign_in')?.slice(0, -4)}AAAA`);
    expect(await open(callback)).toBe('/console/?problem=expired');
  });

  it.each([
    ['another state', (url: URL) => url.searchParams.set('state', 'x'.repeat(43))],
    ['no state', (url: URL) => url.searchParams.delete('state')],
  ])('ends nowhere with %s', async (_what, change) => {
    const url = new URL(await goToCallback(browser, consoleUrl, 'ada'));
    change(url);
    expect(await open(url.href)).toBe('/console/?problem=expired');
  });

  it.each([
    ['another code', (url: URL) => url.searchParams.set('code', 'x'.repeat(43))],
    ['two codes', (url: URL) => url.searchParams.append('code', 'x')],
    ['two states', (url: URL) => url.searchParams.append('state', 'x')],
    ['no code', (url: URL) => url.searchParams.delete('code')],
    ['the word of another issuer', (url: URL) => url.searchParams.set('iss', 'https://evil.example')],
  ])('ends nowhere with %s', async (_what, change) => {
    const url = new URL(await goToCallback(browser, consoleUrl, 'ada'));
    change(url);
    expect(await open(url.href)).toBe('/console/?problem=failed');
  });

  it('of one browser opens nothing in another', async () => {
    const callback = await goToCallback(browse({ [consoleUrl]: stage.app }), consoleUrl, 'ada');
    await goToCallback(browser, consoleUrl, 'kim');
    expect(await open(callback)).toBe('/console/?problem=expired');
  });

  it('is gone once, and its cookie with it', async () => {
    const callback = await goToCallback(browser, consoleUrl, 'ada');
    const flow = browser.cookies.get(consoleUrl)?.get('expediter_sign_in') ?? '';
    expect(await open(callback)).toBe('/console/');
    expect(browser.cookies.get(consoleUrl)?.has('expediter_sign_in')).toBe(false);
    expect(await open(callback)).toBe('/console/?problem=expired');
    browser.cookies.get(consoleUrl)?.set('expediter_sign_in', flow);
    expect(await open(callback)).toBe('/console/?problem=failed');
  });

  it('can be gone at another process', async () => {
    const other = await startStage({ env: stage.env, databaseUrl: stage.databaseUrl });
    try {
      const callback = await goToCallback(browser, consoleUrl, 'ada');
      const { pathname, search } = new URL(callback);
      const [flow] = [...(browser.cookies.get(consoleUrl) ?? [])];
      const answer = await sendAsIs(other.app, `${pathname}${search}`, {
        headers: { cookie: flow?.join('=') ?? '' },
      });
      expect([answer.status, answer.headers.get('location')]).toEqual([303, '/console/']);
    } finally {
      await other.stop();
    }
  });

  it('leaves nothing of it in the log', async () => {
    const callback = await goToCallback(browser, consoleUrl, 'ada');
    const flow = browser.cookies.get(consoleUrl)?.get('expediter_sign_in') ?? '?';
    await open(callback);
    await open(callback);
    const logged = stage.logged.join('');
    for (const secret of [
      new URL(callback).searchParams.get('code') ?? '?',
      flow,
      oidc.env['OIDC_CLIENT_SECRET'] ?? '?',
    ]) {
      expect(logged).not.toContain(secret);
    }
  });
});

describe('an issuer with its own ways', () => {
  it('may have no secret for the console, and tell groups and addresses by userinfo alone', async () => {
    const other = await startOidcProvider({ consoleUrl, isPublic: true, inUserinfo: true });
    const served = await startStage({ env: other.env, databaseUrl: stage.databaseUrl });
    try {
      await grant({ email: 'kim@club.example' }, ['viewer'], ['club-1']);
      other.people.set('kim', { email: 'kim@club.example', email_verified: true, groups: ['managers'] });
      const { to, cookie } = await signInByOidc(consoleUrl, 'kim', { browser: browse({ [consoleUrl]: served.app }) });
      expect(to).toBe('/console/');
      const { body } = await sendAsIs(served.app, '/console/session', { headers: { cookie, ...OWN_PAGE } });
      expect(body).toMatchObject({ name: 'kim@club.example', rights: [{ locations: ['club-1'] }] });
    } finally {
      await served.stop();
      await other.stop();
    }
  });
});

describe('the ways to sign in', () => {
  it('are told to anybody at our page', async () => {
    const { body } = await sendAsIs(stage.app, '/console/session/ways', { headers: OWN_PAGE });
    expect(body).toEqual({ oidc: true });
    const without = await startStage({ databaseUrl: stage.databaseUrl });
    try {
      const answer = await sendAsIs(without.app, '/console/session/ways', { headers: OWN_PAGE });
      expect(answer.body).toEqual({ oidc: false });
    } finally {
      await without.stop();
    }
  });
});

it('OPERATOR_TOKEN and its sessions end with the first admin, and are back where nobody is one', async () => {
  const session = await logIn(stage.app);
  const opened = async (): Promise<number[]> => {
    stage.invalidateCache();
    const byToken = { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } };
    return [
      (await sendAsIs(stage.app, '/v1/locations/club-1', byToken)).status,
      (await ask('/console/api/locations/club-1', session)).status,
    ];
  };
  await grant({ group: 'managers' }, ['viewer', 'admin'], ['club-1']);
  await grant({ group: 'team' }, ['operator', 'member-data']);
  expect(await opened()).toEqual([200, 200]);
  await grant({ email: 'ada@team.example' }, ['admin']);
  expect(await opened()).toEqual([401, 401]);
  await stage.query('DELETE FROM operator_grants');
  expect(await opened()).toEqual([200, 200]);
});

describe('signing in again', () => {
  it('makes the session new and ends the one before, if it is the same person', async () => {
    await grant({ group: 'team' }, ['viewer']);
    await grant({ group: 'managers' }, ['viewer']);
    const browser = browse({ [consoleUrl]: stage.app });
    const first = await signIn('ada', { browser });
    browser.cookies.get(oidc.issuer)?.clear();
    const refused = await signIn('kim', { browser, query: '?again=1' });
    expect(refused.to).toBe('/console/?problem=failed');
    expect(await newestAction()).toMatchObject({
      actor_name: 'kim@club.example',
      outcome: 'refused',
      after: 'other_person',
    });
    expect((await ask('/console/session', first.cookie)).status).toBe(200);

    browser.cookies.get(oidc.issuer)?.clear();
    const second = await signIn('ada', { browser, query: '?again=1&to=/console/people' });
    expect(second.to).toBe('/console/people');
    expect(second.cookie).not.toBe(first.cookie);
    expect((await ask('/console/session', second.cookie)).status).toBe(200);
    expect((await ask('/console/session', first.cookie)).status).toBe(401);
  });

  it('asks the issuer to look at them, and does so only for somebody who is signed in', async () => {
    const start = `${consoleUrl}/console/session/oidc?again=1`;
    const asked = new URL(locationOf(await browse({ [consoleUrl]: stage.app }).get(start, OWN_PAGE), start))
      .searchParams;
    expect(asked.get('prompt')).toBeNull();
    await grant({ group: 'team' }, ['viewer']);
    const browser = browse({ [consoleUrl]: stage.app });
    await signIn('ada', { browser });
    const again = new URL(locationOf(await browser.get(start, OWN_PAGE), start)).searchParams;
    expect([again.get('prompt'), again.get('max_age'), again.get('code_challenge_method')]).toEqual([
      'login',
      '0',
      'S256',
    ]);
  });
});
