import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { BEHIND_US } from '../../../world/network/from-elsewhere.ts';
import { sendAsIs, OPERATOR_TOKEN, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { OWN_PAGE, giveRoles, logIn } from '../../../world/system/log-in.ts';
import { browse, goToCallback, locationOf, signInByOidc, type Browser } from '../../../world/issuer/sign-in-by-oidc.ts';
import { startOidcProvider, type OidcProvider, type Person } from '../../../world/issuer/start-oidc-provider.ts';
import { stageOfTest, startStage, type Stage } from '../../support/operator-stage.ts';

let stage: Stage;
let oidc: OidcProvider;
/** Nobody listens there. */
const consoleUrl = 'http://127.0.0.1:8080';
const FROM_ISSUER = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };

beforeAll(async () => {
  oidc = await startOidcProvider({ consoleUrl });
  stage = await startStage({
    env: { ...oidc.env, ...BEHIND_US, OPERATOR_TOKEN, OIDC_ALLOWED_DOMAINS: 'Team.example' },
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

const browseAt = (at = stage): Browser => browse({ [consoleUrl]: at.app });
const signIn = (login: string, about: Parameters<typeof signInByOidc>[2] = {}): ReturnType<typeof signInByOidc> =>
  signInByOidc(consoleUrl, login, { browser: browseAt(), ...about });
const grant = (
  to: { email?: string; group?: string },
  roles: string[],
  locations: string[] | null = null,
): Promise<unknown> => giveRoles(stage, to, roles, locations);

const ask = (path: string, cookie: string, method = 'GET'): Promise<OperatorAnswer> =>
  sendAsIs(stage.app, path, { method, headers: { cookie, ...OWN_PAGE } });

async function newestAction(): Promise<Record<string, unknown> | undefined> {
  const [action] = await stage.query(
    `SELECT actor_kind, actor_id, actor_name, action, outcome, after FROM audit LEFT JOIN audit_outcomes USING (audit_id)
     ORDER BY audit_id DESC LIMIT 1`,
  );
  return action;
}

describe('a person who signs in', () => {
  it('gets to the page that they wanted, and is named in the audit', async () => {
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

  it('has the roles of their e-mail address and of each of their groups', async () => {
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

  it('gets and loses rights in the same session when grants are added and removed', async () => {
    await grant({ group: 'managers' }, ['viewer'], ['club-1']);
    const { cookie } = await signIn('kim');
    await grant({ email: 'kim@club.example' }, ['viewer'], ['club-2']);
    stage.invalidateCache();
    expect((await ask('/console/api/locations/club-2', cookie)).status).toBe(200);
    await stage.query('DELETE FROM operator_grants');
    stage.invalidateCache();
    expect((await ask('/console/api/locations/club-1', cookie)).status).toBe(401);
  });

  const verified = (email: string): Person => ({ email, email_verified: true });
  it.each<[string, string, Person]>([
    ['of no allowed domain or group', 'not_allowed', verified('eve@evil.example')],
    ['whose address is unverified', 'not_allowed', { email: 'ada@team.example', email_verified: false }],
    ['whose address is unverified, as a text', 'not_allowed', { email: 'ada@team.example', email_verified: 'false' }],
    ['of a domain that ends like an allowed one', 'not_allowed', verified('a@x.team.example')],
    ['with two domains in the address', 'not_allowed', verified('a@team.example@evil.example')],
    ['whose groups are not a list of names', 'not_allowed', { groups: [{ name: 'team' }, 7] }],
    ['without a grant', 'no_role', verified('Eve@team.example')],
    ['in a group, whose address is not verified', 'no_role', { email: 'ada@team.example', groups: ['team'] }],
  ])('%s is refused, and the audit says who and why', async (_what, problem, claims) => {
    await grant({ email: 'ada@team.example' }, ['admin']);
    oidc.people.set('eve', { preferred_username: 'eve', ...claims });
    expect(await signIn('eve')).toEqual({ to: `/console/?problem=${problem}`, cookie: '' });
    expect(await newestAction()).toMatchObject({
      actor_id: `${oidc.issuer} eve`,
      actor_name: claims['email_verified'] === true ? String(claims['email']).toLowerCase() : 'eve (eve)',
      action: 'sign in',
      outcome: 'refused',
      after: problem,
    });
  });

  it('without a grant is refused each time, and is in the audit at most 30 times an hour', async () => {
    oidc.people.set('mallory', { preferred_username: 'mallory', email: 'm@team.example', email_verified: true });
    for (let nth = 0; nth < 35; nth += 1) expect((await signIn('mallory')).to).toBe('/console/?problem=no_role');
    const rows = await stage.query(`SELECT FROM audit WHERE actor_name = 'm@team.example'`);
    expect(rows.length).toBe(30);
  });

  it('who cancels at the issuer is redirected to a page that says so', async () => {
    expect(await signIn('nobody')).toEqual({ to: '/console/?problem=failed', cookie: '' });
  });

  it("gets to the console's first page if the wanted URL is not a page of the console", async () => {
    await grant({ group: 'team' }, ['viewer']);
    const sentTo = async (to: string): Promise<string> =>
      (await signIn('ada', { query: `?to=${encodeURIComponent(to)}` })).to;
    for (const to of [
      '//evil.example/console',
      'https://evil.example/console/',
      '/console/../evil',
      '/console/%2e%2e/evil',
      '/consoles',
      '/console@evil.example',
      '/\\evil.example',
      '/console/\\..\\..\\evil',
      '/console/\n/evil',
      '/console/\r\nset-cookie: a=b',
      '\t//evil.example',
      `/console/${'x'.repeat(2_000)}`,
    ]) {
      expect(await sentTo(to), to).toBe('/console/');
    }
    expect(await sentTo('/console/orders/a%2Fb?x=//y#z')).toBe('/console/orders/a%2Fb?x=//y');
  });
});

describe('the callback of a sign-in', () => {
  let browser: Browser;
  let callback: string;
  beforeEach(async () => {
    await grant({ group: 'team' }, ['viewer']);
    browser = browseAt();
    callback = await goToCallback(browser, consoleUrl, 'ada');
  });
  const cookies = (): Map<string, string> => browser.cookies.get(consoleUrl) ?? expect.fail('no cookies');
  const open = async (url: string): Promise<string> => {
    const answer = await browser.get(url, FROM_ISSUER);
    return locationOf(answer, url).slice(consoleUrl.length);
  };
  const sessions = (): Promise<Record<string, unknown>[]> => stage.query('SELECT 1 FROM operator_sessions');

  it('is the only route of the console that another site may open', async () => {
    for (const site of ['cross-site', 'same-site']) {
      const headers = { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate' };
      for (const path of ['/session', '/session/oidc', '/session/ways', '/api/orders']) {
        expect((await sendAsIs(stage.app, `/console${path}`, { headers })).status, path).toBe(403);
      }
    }
    const back = (method: string): Promise<OperatorAnswer> =>
      sendAsIs(stage.app, '/console/session/callback', { method, headers: FROM_ISSUER });
    for (const method of ['POST', 'HEAD', 'DELETE']) expect((await back(method)).status).not.toBe(303);
    const answer = await back('GET');
    expect(answer.status).toBe(303);
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  it('is refused without the cookie of the sign-in', async () => {
    cookies().clear();
    const before = await sessions();
    expect(await open(callback)).toBe('/console/?problem=expired');
    expect(await sessions()).toEqual(before);
  });

  it('is refused with a changed cookie', async () => {
    cookies().set('expediter_sign_in', `${cookies().get('expediter_sign_in')?.slice(0, -4)}AAAA`);
    expect(await open(callback)).toBe('/console/?problem=expired');
  });

  it.each<[string, string, (query: URLSearchParams) => void]>([
    ['another state', 'expired', (query) => query.set('state', 'x'.repeat(43))],
    ['no state', 'expired', (query) => query.delete('state')],
    ['another code', 'failed', (query) => query.set('code', 'x'.repeat(43))],
    ['two codes', 'failed', (query) => query.append('code', 'x')],
    ['two states', 'failed', (query) => query.append('state', 'x')],
    ['no code', 'failed', (query) => query.delete('code')],
    ['the `iss` of another issuer', 'failed', (query) => query.set('iss', 'https://evil.example')],
  ])('is refused with %s', async (_what, problem, change) => {
    const url = new URL(callback);
    change(url.searchParams);
    expect(await open(url.href)).toBe(`/console/?problem=${problem}`);
  });

  it('is refused in another browser', async () => {
    const another = await goToCallback(browseAt(), consoleUrl, 'kim');
    expect(await open(another)).toBe('/console/?problem=expired');
  });

  it('works only once, and deletes its cookie', async () => {
    const flow = cookies().get('expediter_sign_in') ?? '';
    expect(await open(callback)).toBe('/console/');
    expect(cookies().has('expediter_sign_in')).toBe(false);
    expect(await open(callback)).toBe('/console/?problem=expired');
    cookies().set('expediter_sign_in', flow);
    expect(await open(callback)).toBe('/console/?problem=failed');
  });

  it('works at another process than the one that started the sign-in', async () => {
    const other = browseAt(await stageOfTest({ env: stage.env, databaseUrl: stage.databaseUrl }));
    other.cookies.set(consoleUrl, cookies());
    const answer = await other.get(callback, FROM_ISSUER);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/console/']);
  });

  it('leaves no code or cookie in the log', async () => {
    const [code, flow] = [new URL(callback).searchParams.get('code'), cookies().get('expediter_sign_in')];
    await open(callback);
    await open(callback);
    const logged = stage.logged.join('');
    for (const secret of [code, flow, oidc.env['OIDC_CLIENT_SECRET']]) expect(logged).not.toContain(secret ?? '?');
  });
});

describe('an issuer with other conventions', () => {
  it('works if it needs no client secret and gives groups and addresses only in userinfo', async () => {
    const other = await startOidcProvider({ consoleUrl, isPublic: true, inUserinfo: true });
    onTestFinished(() => other.stop());
    const served = await stageOfTest({ env: other.env, databaseUrl: stage.databaseUrl });
    await grant({ email: 'kim@club.example' }, ['viewer'], ['club-1']);
    other.people.set('kim', { email: 'kim@club.example', email_verified: true, groups: ['managers'] });
    const { to, cookie } = await signIn('kim', { browser: browseAt(served) });
    expect(to).toBe('/console/');
    const { body } = await sendAsIs(served.app, '/console/session', { headers: { cookie, ...OWN_PAGE } });
    expect(body).toMatchObject({ name: 'kim@club.example', rights: [{ locations: ['club-1'] }] });
  });
});

describe('the list of ways to sign in', () => {
  it('says, even without a session, whether people can sign in by OIDC', async () => {
    const without = await stageOfTest({ databaseUrl: stage.databaseUrl });
    const waysAt = async ({ app }: Stage): Promise<unknown> =>
      (await sendAsIs(app, '/console/session/ways', { headers: OWN_PAGE })).body;
    expect([await waysAt(stage), await waysAt(without)]).toEqual([{ oidc: true }, { oidc: false }]);
  });
});

it('OPERATOR_TOKEN and its sessions are refused as long as a person is admin of all locations', async () => {
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

describe('a repeated sign-in', () => {
  it('opens another session for the same person and ends the old one', async () => {
    await grant({ group: 'team' }, ['viewer']);
    await grant({ group: 'managers' }, ['viewer']);
    const browser = browseAt();
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

  it('asks the issuer to check the person again if somebody is signed in', async () => {
    const start = `${consoleUrl}/console/session/oidc?again=1`;
    const askedBy = async (by: Browser): Promise<object> =>
      Object.fromEntries(new URL(locationOf(await by.get(start, OWN_PAGE), start)).searchParams);
    expect(await askedBy(browseAt())).not.toHaveProperty('prompt');
    await grant({ group: 'team' }, ['viewer']);
    const browser = browseAt();
    await signIn('ada', { browser });
    expect(await askedBy(browser)).toMatchObject({ prompt: 'login', max_age: '0', code_challenge_method: 'S256' });
  });
});
