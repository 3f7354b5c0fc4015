/** What an issuer, or somebody who says that he is one, may say that is not so. */
import { hash } from 'node:crypto';
import { SignJWT, exportJWK, generateKeyPair, type JWTPayload } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { readConfig } from '../../../src/config/config.ts';
import { seal } from '../../../src/core/locations/settings-key.ts';
import {
  type Flow,
  IssuerAway,
  oidcClient,
  type OidcSettings,
  readPerson,
  sealFlow,
} from '../../../src/identity/oidc-client.ts';
import { sendAsIs, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { BEHIND_US } from '../../../world/network/from-elsewhere.ts';
import { OWN_PAGE, giveRoles } from '../../../world/system/log-in.ts';
import { sendEndless } from '../../../world/network/send-endless.ts';
import { readBody, sendJson, serveHttp, type HttpServer } from '../../../world/network/serve-http.ts';
import { browse, locationOf, type Browser } from '../../../world/issuer/sign-in-by-oidc.ts';
import { stageOfTest, startStage, type Stage } from '../../support/operator-stage.ts';

const CLIENT_ID = 'the-console';
const CLIENT_SECRET = 'a-secret-of-the-console-that-is-long-enough-for-hs256';
/** Nobody is there: the issuer's way back is gone by hand. */
const CONSOLE_URL = 'http://127.0.0.1:9';
const { privateKey, publicKey } = await generateKeyPair('RS256');
const { privateKey: anotherKey } = await generateKeyPair('RS256');

let stage: Stage;
let issuer: HttpServer;
let browser: Browser;
/** What the issuer says next; whatever is undefined is as it should be. */
let says: {
  discovery?: object | 'down' | 'endless' | 'elsewhere' | undefined;
  /** Made of what an honest one would say. */
  idToken?: ((honest: JWTPayload) => Promise<string> | string) | 'none';
  claims?: Record<string, unknown>;
  userinfo?: object;
  /** The only way in which the client may prove who it is. */
  holdsTo?: string;
};
let nonce: string;
let tokenRequests: URLSearchParams[];

const sign = (claims: JWTPayload, key = privateKey): Promise<string> =>
  new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'its-key' }).sign(key);
const seconds = (): number => Math.floor(Date.now() / 1000);

beforeAll(async () => {
  issuer = await serveHttp(async (request, response) => {
    const discovery = {
      issuer: issuer.url,
      authorization_endpoint: `${issuer.url}/authorize`,
      token_endpoint: `${issuer.url}/token`,
      userinfo_endpoint: `${issuer.url}/userinfo`,
      jwks_uri: `${issuer.url}/keys`,
    };
    switch (request.url ?? '') {
      case '/.well-known/openid-configuration':
        if (says.discovery === 'down') return sendJson(response, 500, {});
        if (says.discovery === 'endless') return sendEndless(response);
        if (says.discovery === 'elsewhere') return void response.writeHead(302, { location: '/moved' }).end();
        return sendJson(response, 200, { ...discovery, ...says.discovery });
      case '/moved':
        return sendJson(response, 200, discovery);
      case '/keys':
        return sendJson(response, 200, {
          keys: [{ ...(await exportJWK(publicKey)), alg: 'RS256', use: 'sig', kid: 'its-key' }],
        });
      case '/token': {
        const form = new URLSearchParams((await readBody(request)).toString());
        tokenRequests.push(form);
        const way = request.headers.authorization === undefined ? 'client_secret_post' : 'client_secret_basic';
        if (says.holdsTo !== undefined && says.holdsTo !== way)
          return sendJson(response, 401, { error: 'invalid_client' });
        const honest = {
          iss: issuer.url,
          aud: CLIENT_ID,
          sub: 'ada',
          iat: seconds(),
          exp: seconds() + 60,
          nonce,
          email: 'ada@team.example',
          email_verified: true,
          groups: ['team'],
          ...says.claims,
        };
        const { idToken = (claims: JWTPayload) => sign(claims) } = says;
        return sendJson(response, 200, {
          access_token: 'an-access-token',
          token_type: 'Bearer',
          ...(idToken !== 'none' && { id_token: await idToken(honest) }),
        });
      }
      case '/userinfo':
        return sendJson(response, 200, says.userinfo ?? { sub: 'ada' });
      default:
        return sendJson(response, 404, {});
    }
  });
  stage = await startStage({
    env: {
      ...BEHIND_US,
      OIDC_ISSUER: issuer.url,
      OIDC_CLIENT_ID: CLIENT_ID,
      OIDC_CLIENT_SECRET: CLIENT_SECRET,
      OIDC_ALLOWED_GROUPS: 'team',
      CONSOLE_URL,
    },
  });
  await giveRoles(stage, { group: 'team' }, ['viewer']);
});
beforeEach(() => {
  says = {};
  browser = browse({ [CONSOLE_URL]: stage.app });
  tokenRequests = [];
});
afterAll(async () => {
  await stage?.stop();
  await issuer?.stop();
});

/** Goes to the issuer, which sends the browser back at once. @returns the path of the callback */
async function goThere(query = ''): Promise<{ callback: string; asked: URLSearchParams }> {
  const start = `${CONSOLE_URL}/console/session/oidc${query}`;
  const asked = new URL(locationOf(await browser.get(start, OWN_PAGE), start)).searchParams;
  nonce = asked.get('nonce') ?? '';
  return { callback: `/console/session/callback?code=a-code&state=${asked.get('state')}`, asked };
}

async function comeBack(callback: string): Promise<string> {
  const answer = await browser.get(`${CONSOLE_URL}${callback}`, { 'sec-fetch-site': 'cross-site' });
  return answer.headers.get('location') ?? String(answer.status);
}

const hasSession = (): boolean => browser.cookies.get(CONSOLE_URL)?.has('expediter_session') === true;

/** Signs in by an issuer that is believed. @returns what is kept of the person */
async function signedIn(columns: string): Promise<Record<string, unknown> | undefined> {
  expect(await comeBack((await goThere()).callback)).toBe('/console/');
  const [session] = await stage.query(`SELECT ${columns} FROM operator_sessions ORDER BY created_at DESC LIMIT 1`);
  return session;
}

async function whyRefused(): Promise<unknown> {
  const [action] = await stage.query(
    `SELECT outcome, after FROM audit JOIN audit_outcomes USING (audit_id) WHERE action = 'sign in'
     ORDER BY audit_id DESC LIMIT 1`,
  );
  return action?.['outcome'] === 'refused' ? action['after'] : undefined;
}

it('a right ID token signs in, and the issuer gets the verifier of its code_challenge', async () => {
  const { callback, asked } = await goThere();
  expect(await comeBack(callback)).toBe('/console/');
  expect(hasSession()).toBe(true);
  const [request] = tokenRequests;
  expect(asked.get('code_challenge')).toBe(hash('sha256', request?.get('code_verifier') ?? '', 'base64url'));
  expect(request?.get('redirect_uri')).toBe(`${CONSOLE_URL}/console/session/callback`);
});

describe('an ID token is refused', () => {
  const unsigned = (claims: JWTPayload): string =>
    `${[{ alg: 'none' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.`;
  it.each<[string, typeof says]>([
    ['that is signed with another key', { idToken: (claims) => sign(claims, anotherKey) }],
    ['with alg none', { idToken: unsigned }],
    [
      'that is signed with the client secret',
      {
        idToken: (claims) =>
          new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode(CLIENT_SECRET)),
      },
    ],
    ['with changed claims', { idToken: async (claims) => changed(await sign(claims)) }],
    ['from another issuer', { claims: { iss: 'https://accounts.google.com' } }],
    ['for another client', { claims: { aud: 'another-client' } }],
    [
      'for two clients, authorized for the other one',
      { claims: { aud: [CLIENT_ID, 'another-client'], azp: 'another-client' } },
    ],
    ['that has expired', { claims: { iat: seconds() - 7_200, exp: seconds() - 3_600 } }],
    ['with the nonce of another sign-in', { claims: { nonce: 'another' } }],
    ['without a nonce', { claims: { nonce: undefined } }],
    ['without a subject', { claims: { sub: undefined } }],
    ['that is missing', { idToken: 'none' }],
    [
      'with a userinfo about another person',
      { claims: { groups: undefined }, userinfo: { sub: 'eve', groups: ['team'] } },
    ],
  ])('%s', async (_what, lie) => {
    says = lie;
    expect(await comeBack((await goThere()).callback)).toBe('/console/?problem=failed');
    expect(hasSession()).toBe(false);
  });

  function changed(token: string): string {
    const [head, claims = '', signature] = token.split('.');
    const read = JSON.parse(Buffer.from(claims, 'base64url').toString()) as object;
    return [head, Buffer.from(JSON.stringify({ ...read, sub: 'eve' })).toString('base64url'), signature].join('.');
  }
});

it('an e-mail address is used only if the same answer says that it is verified', async () => {
  const theirs = { email: 'eve@evil.example', email_verified: true, preferred_username: 'eve' };
  says = {
    claims: { email: 'ada@team.example', email_verified: undefined, groups: undefined },
    userinfo: { sub: 'ada', groups: ['team'], ...theirs },
  };
  expect(await signedIn('name, email')).toEqual({ name: 'eve (ada)', email: null });
});

it.each(['client_secret_post', 'client_secret_basic'])(
  'a sign-in works at an issuer that requires %s',
  async (holdsTo) => {
    says = { holdsTo };
    expect(await signedIn('email')).toEqual({ email: 'ada@team.example' });
  },
);

it.each([
  ['a list', ['team', 'cooks']],
  ['one name', 'team'],
  ['names separated by commas', 'team, cooks'],
  ['an object whose keys are roles', { team: { 'org-1': 'club.example' } }],
  ['a list with null', [null, 'team']],
])('groups are read from %s', async (_what, groups) => {
  says = { claims: { groups } };
  expect(await signedIn('groups')).toMatchObject({ groups: expect.arrayContaining(['team']) });
});

it.each([
  ['none', null],
  ['a distinguished name', 'CN=team,OU=team'],
  ['a number', 7],
])('a sign-in is refused if its groups are %s', async (_what, groups) => {
  says = { claims: { groups } };
  expect(await comeBack((await goThere()).callback)).not.toBe('/console/');
});

it('an e-mail address with email_verified "true" as a text is used', async () => {
  says = { claims: { email_verified: 'true' } };
  expect(await signedIn('email')).toEqual({ email: 'ada@team.example' });
  says = { claims: { email_verified: 'false' } };
  expect(await signedIn('email')).toEqual({ email: null });
});

it('a remembered sign-in counts from its auth_time, or from now if that is in the future', async () => {
  const signedInAgo = async (authTime: number | undefined): Promise<number> => {
    says = { claims: { auth_time: authTime } };
    return Number((await signedIn('extract(epoch FROM now() - signed_in_at)::int AS ago'))?.['ago']);
  };
  expect(await signedInAgo(seconds() - 3_600)).toBeGreaterThan(3_590);
  expect(await signedInAgo(seconds() + 3_600)).toBeLessThan(10);
  // Who does not say when may have seen them last year.
  expect(await signedInAgo(undefined)).toBeGreaterThan(3_600);
});

it('a name or group with control characters or over 255 characters is left out', async () => {
  const wrong = ['team\0', 'a\nb', 'x'.repeat(256), '', 7];
  says = { claims: { groups: ['team', ...wrong], email: undefined, preferred_username: 'ada\u001b[2J' } };
  expect(await signedIn('name, groups')).toEqual({ name: 'ada', groups: ['team'] });
});

it('a sign-in opens only one session, even if the issuer accepts the code twice', async () => {
  const { callback } = await goThere();
  const flow = browser.cookies.get(CONSOLE_URL)?.get('expediter_sign_in') ?? '';
  expect(await comeBack(callback)).toBe('/console/');
  browser.cookies.get(CONSOLE_URL)?.clear();
  browser.cookies.get(CONSOLE_URL)?.set('expediter_sign_in', flow);
  expect(await comeBack(callback)).toBe('/console/?problem=expired');
  expect(tokenRequests).toHaveLength(2);
  expect(hasSession()).toBe(false);
});

it('a sign-in is refused if the issuer answers an error, whose text is not logged', async () => {
  const { callback } = await goThere();
  const denied = callback.replace('code=a-code', 'error=access_denied&error_description=a-secret-of-theirs');
  expect(await comeBack(denied)).toBe('/console/?problem=failed');
  expect(stage.logged.join('')).not.toContain('a-secret-of-theirs');
  expect(tokenRequests).toEqual([]);
});

it('twenty invented codes of one source cause only ten requests to the issuer', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  says = { idToken: 'none' };
  const { callback } = await goThere();
  const cookies = new Map(browser.cookies.get(CONSOLE_URL));
  const answers: string[] = [];
  for (let nth = 0; nth < 20; nth += 1) {
    for (const [name, value] of cookies) browser.cookies.get(CONSOLE_URL)?.set(name, value);
    answers.push(await comeBack(callback.replace('a-code', `code-${nth}`)));
  }
  expect(answers.at(0)).toBe('/console/?problem=failed');
  expect(answers.at(-1)).toBe('/console/?problem=failed');
  expect(tokenRequests).toHaveLength(10);
  vi.useRealTimers();
});

it('callbacks without a cookie do not count as guesses, because another page can cause them', async () => {
  const { callback } = await goThere();
  for (let nth = 0; nth < 30; nth += 1) {
    const image = await sendAsIs(stage.app, `/console/session/callback?x=${nth}`);
    expect(image.headers.get('location')).toBe('/console/?problem=expired');
  }
  expect(await comeBack(callback)).toBe('/console/');
});

it('an e-mail address with a letter that folds to an ASCII letter is not used', async () => {
  says = { claims: { email: 'ada@ban\u212a.example' } };
  expect(await signedIn('email')).toEqual({ email: null });
});

describe('a started sign-in', () => {
  const KEYS = (): ReturnType<typeof readConfig>['SETTINGS_KEY'] => readConfig(stage.env).SETTINGS_KEY;
  const flowOf = (asked: URLSearchParams, startedAt: number): Flow => ({
    state: asked.get('state') ?? '',
    nonce,
    verifier: 'x'.repeat(43),
    startedAt,
    to: '/console/',
    opens: '0197a5f0-0000-4000-8000-000000000001',
  });

  it('expires after ten minutes', async () => {
    for (const [minutes, to] of [
      [11, '/console/?problem=expired'],
      [9, '/console/'],
    ] as const) {
      const { callback, asked } = await goThere();
      const flow = await sealFlow(KEYS(), flowOf(asked, Date.now() - minutes * 60_000));
      browser.cookies.get(CONSOLE_URL)?.set('expediter_sign_in', flow);
      expect(await comeBack(callback), String(minutes)).toBe(to);
    }
  });

  it('is refused if its cookie was encrypted by the same key for another purpose', async () => {
    const { callback, asked } = await goThere();
    const sealed = await seal(KEYS(), flowOf(asked, Date.now()), 'locations/club-1');
    browser.cookies.get(CONSOLE_URL)?.set('expediter_sign_in', sealed);
    expect(await comeBack(callback)).toBe('/console/?problem=expired');
  });
});

describe('a repeated sign-in', () => {
  it.each<[string, object, string | undefined]>([
    ['that the issuer checked just now is accepted', { auth_time: seconds() }, undefined],
    ['that the issuer did not check is refused', { auth_time: seconds() - 3_600 }, 'not_recent'],
    ['without auth_time is refused', {}, 'not_recent'],
    ['by another person is refused', { auth_time: seconds(), sub: 'eve' }, 'other_person'],
  ])('%s', async (_what, claims, why) => {
    await comeBack((await goThere()).callback);
    says = { claims: { ...claims } };
    const { callback } = await goThere('?again=1');
    expect(await comeBack(callback)).toBe(why === undefined ? '/console/' : '/console/?problem=failed');
    expect(await whyRefused()).toBe(why);
  });
});

describe('an issuer that cannot be used', () => {
  it.each<[string, typeof says.discovery]>([
    ['that is down', 'down'],
    ['with an endless answer', 'endless'],
    ['that redirects', 'elsewhere'],
    ['that names another issuer', { issuer: 'https://accounts.google.com' }],
    ['without an authorization endpoint', { authorization_endpoint: undefined }],
  ])('%s causes 503, and is asked again at the next sign-in', async (_what, discovery) => {
    const fresh = await stageOfTest({ env: stage.env, databaseUrl: stage.databaseUrl });
    says = { discovery };
    const start = (): Promise<OperatorAnswer> => sendAsIs(fresh.app, '/console/session/oidc', { headers: OWN_PAGE });
    const answer = await start();
    expect(answer).toMatchObject({ status: 503, body: { detail: expect.stringContaining('cannot be reached') } });
    expect(answer.headers.get('retry-after')).toBe('2');
    says = {};
    expect((await start()).status).toBe(302);
  });
});

it("an issuer for all of a vendor's tenants is refused, because anybody can have a tenant", async () => {
  const tenants = 'https://login.microsoftonline.com';
  const answer = vi.spyOn(globalThis, 'fetch').mockImplementation(async () =>
    Response.json({
      issuer: `${tenants}/{tenantid}/v2.0`,
      authorization_endpoint: `${tenants}/common/oauth2/v2.0/authorize`,
      token_endpoint: `${tenants}/common/oauth2/v2.0/token`,
    }),
  );
  try {
    const settings = {
      issuer: `${tenants}/common/v2.0`,
      clientId: CLIENT_ID,
      consoleUrl: CONSOLE_URL,
      scopes: 'openid',
    };
    const client = oidcClient(settings as OidcSettings);
    await expect(client.startUrl({ state: 's', nonce: 'n', verifier: 'v', again: false })).rejects.toThrow(IssuerAway);
  } finally {
    answer.mockRestore();
  }
});

describe('a Google account with an address of the domain', () => {
  const settings = {
    issuer: 'https://accounts.google.com',
    domains: ['team.example'],
    groups: [],
    groupsClaim: 'groups',
  };
  const claims = { iss: settings.issuer, sub: '1', email: 'ada@team.example', email_verified: true };
  it.each<[string, object, boolean]>([
    ['that the domain manages may sign in', { hd: 'team.example' }, true],
    ['that no domain manages may not sign in', {}, false],
    ['that another domain manages may not sign in', { hd: 'evil.example' }, false],
    ['with an unverified address may not sign in', { hd: 'team.example', email_verified: false }, false],
  ])('%s', (_what, said, isAllowed) => {
    expect(readPerson([{ ...claims, ...said }], settings as unknown as OidcSettings).isAllowed).toBe(isAllowed);
  });
});

it.each<[object, string[]]>([
  [{}, ['email is missing: the issuer gives it for the scope email', 'groups is missing: a list of names is required']],
  [
    { email: 'ada@team.example', groups: null },
    ['email_verified is missing: true is required', 'groups is null: a list of names is required'],
  ],
  [
    { email: 'ada@team.example', email_verified: 'yes', groups: [7] },
    ['email_verified is of the type string: true is required', 'groups is a list: a list of names is required'],
  ],
  [
    { email: 'ädа@team.example', email_verified: true, groups: ['x'] },
    ['email is of the type string: an address in ASCII is required'],
  ],
  [{ email: 'ada@team.example', email_verified: true, groups: ['team'] }, []],
])('the log names the unreadable claims of %j without their values', (said, unread) => {
  const settings = {
    issuer: 'https://issuer.example',
    domains: ['team.example'],
    groups: ['team'],
    groupsClaim: 'groups',
  };
  const person = readPerson([{ iss: settings.issuer, sub: 'ada', ...said }], settings as unknown as OidcSettings);
  expect(person.unread).toEqual(unread);
});
