/** `expediter login`: a person at a real OpenID provider allows it by a page of the console, and commands then use the API. */
import { hash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { seal } from '../../../src/core/locations/settings-key.ts';
import { readConfig } from '../../../src/config/config.ts';
import { OPERATOR_TOKEN, sendAsIs, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { freePort } from '../../../world/network/free-port.ts';
import { BEHIND_US, fromElsewhere } from '../../../world/network/from-elsewhere.ts';
import { OWN_PAGE, giveRoles, logIn } from '../../../world/system/log-in.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { runCli } from '../../support/run-cli.ts';
import type { Ended } from '../../../world/processes/run-program.ts';
import { browse, locationOf, signInByOidc } from '../../../world/issuer/sign-in-by-oidc.ts';
import { startOidcProvider, type OidcProvider } from '../../../world/issuer/start-oidc-provider.ts';
import { until } from '../../../world/processes/until.ts';

const TLS = new URL('../../support/postgres-tls/', import.meta.url);

let oidc: OidcProvider;
let stage: Stage;
/** Another process, where nobody signs in by OIDC. */
let other: Stage;
let url: string;
let home: string;

beforeAll(async () => {
  url = `http://127.0.0.1:${await freePort()}`;
  oidc = await startOidcProvider({ consoleUrl: url });
  for (const name of ['ada', 'bob']) {
    oidc.people.set(name, { email: `${name}@club.example`, email_verified: true, groups: ['managers'] });
  }
  stage = await startStage({ env: { ...oidc.env, ...BEHIND_US, OPERATOR_TOKEN } });
  await stage.app.listen({ host: '127.0.0.1', port: Number(new URL(url).port) });
  other = await startStage({ env: { ...BEHIND_US, OPERATOR_TOKEN }, databaseUrl: stage.databaseUrl });
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await grant('ada');
  home = await mkdtemp(join(tmpdir(), 'expediter-home-'));
});
afterEach(() => vi.useRealTimers());
afterAll(async () => {
  await other?.stop();
  await stage?.stop();
  await oidc?.stop();
  if (home !== undefined) await rm(home, { recursive: true });
});

const grant = (name: string): Promise<unknown> =>
  giveRoles(stage, { email: `${name}@club.example` }, ['viewer', 'integrator'], ['club-1']);
const cli = (...args: string[]): Promise<Ended> => runCli({ XDG_CONFIG_HOME: home }, args);
const post = (path: string, body: object, headers: Record<string, string> = {}, at = stage): Promise<OperatorAnswer> =>
  at.post(path, body, { ...fromElsewhere(), ...headers });
const challengeOf = (verifier: string): string => hash('sha256', verifier, 'base64url');

/** What a command asks for. */
const newAsk = () => ({
  port: '40123',
  challenge: challengeOf('v'.repeat(43)),
  state: randomBytes(32).toString('base64url'),
});
type Ask = ReturnType<typeof newAsk>;
const redeem = (code: string | null, verifier = 'v'.repeat(43), at = stage, headers = fromElsewhere()) =>
  post('/login/token', { code, verifier }, headers, at);

/** Opens what a command printed, and signs in. @returns what the console's page was asked, and the session's cookie */
async function open(asked: string, login: string): Promise<{ ask: Ask; cookie: string }> {
  const browser = browse();
  const { search } = new URL(locationOf(await browser.get(asked), asked));
  const { to, cookie } = await signInByOidc(url, login, { browser, query: search });
  expect(to).toMatch(/^\/console\/login\?/);
  return { ask: Object.fromEntries(new URL(to, url).searchParams) as Ask, cookie };
}
const answer = (ask: object, headers: Record<string, string>, allow = true): Promise<OperatorAnswer> =>
  post('/console/session/command', { ...ask, allow }, headers);

/** A person opens the page of a command, and presses a button. @returns where the browser goes */
async function press(asked: string, login = 'ada', allow = true): Promise<URL> {
  const { ask, cookie } = await open(asked, login);
  const { body } = await answer(ask, { cookie, ...OWN_PAGE }, allow);
  return new URL(String(body['to']));
}
const askedUrl = (ask: Ask = newAsk()): string => `${url}/login?${new URLSearchParams(ask).toString()}`;
const codeFor = async (login: string): Promise<string | null> =>
  (await press(askedUrl(), login)).searchParams.get('code');

describe('a login code for the command line', () => {
  it('gives a command the roles of the person who allows the login, and works only once', async () => {
    const ask = newAsk();
    const to = await press(askedUrl(ask));
    expect(to.origin).toBe('http://127.0.0.1:40123');
    expect(Object.fromEntries(to.searchParams)).toEqual({ code: expect.any(String), state: ask.state, iss: url });
    const code = to.searchParams.get('code');
    const tokens = await Promise.all([redeem(code), redeem(code, undefined, other)]);
    expect(new Set(tokens.map(({ status }) => status))).toEqual(new Set([200, 403]));
    expect(await redeem(code)).toMatchObject({ status: 403, body: { detail: expect.stringMatching(/used already/) } });

    const token = String(tokens.find(({ status }) => status === 200)?.body['token']);
    const use = async (path: string, method = 'GET'): Promise<number> =>
      (await sendAsIs(stage.app, path, { method, headers: { authorization: `Bearer ${token}` } })).status;
    expect(await use('/v1/locations/club-1')).toBe(200);
    expect(await use('/v1/operators/sessions')).toBe(403);
    expect(await post('/console/session', { token }, OWN_PAGE)).toMatchObject({ status: 401 });
    // It lasts, and proves, no more than the session of the browser.
    const kept = 'actor_id, name, email, groups, created_at, signed_in_at, expires_at';
    expect(await stage.query(`SELECT DISTINCT ${kept} FROM operator_sessions`)).toHaveLength(1);
    const signIns = await stage.query(
      `SELECT actor_name, outcome, session_id IS NOT NULL AS opened FROM audit JOIN audit_outcomes USING (audit_id)
       LEFT JOIN operator_sessions ON session_id::text = subject WHERE action = 'sign in' ORDER BY outcome`,
    );
    const ada = { actor_name: 'ada@club.example', opened: true };
    expect(signIns).toEqual(['done', 'done', 'refused', 'refused'].map((outcome) => ({ ...ada, outcome })));
    const allowed = await stage.query(
      `SELECT actor_name, outcome, session_id IS NOT NULL AS opened FROM audit JOIN audit_outcomes USING (audit_id)
       LEFT JOIN operator_sessions ON session_id::text = subject WHERE action = 'allow command line'`,
    );
    expect(allowed).toEqual([{ ...ada, outcome: 'done' }]);
    expect(await use('/login', 'DELETE')).toBe(204);
    await until(async () => (await use('/v1/locations/club-1')) === 401);
  });

  it('is refused without its verifier, and is answered 429 after ten guesses', async () => {
    const code = await codeFor('ada');
    const guesser = fromElsewhere();
    vi.useFakeTimers({ toFake: ['performance'] });
    const answers = [];
    for (let nth = 0; nth < 12; nth += 1)
      answers.push((await redeem(code, `${nth}`.repeat(43), stage, guesser)).status);
    expect(answers).toEqual([...Array.from({ length: 10 }, () => 400), 429, 429]);
    expect((await redeem(code)).status).toBe(200);
  });

  it('is refused after two minutes', async () => {
    const { SETTINGS_KEY: keys } = readConfig(stage.env);
    const code = (endsAt: number, place = 'console/login'): Promise<string> => {
      const by = { kind: 'person', id: 'ada', name: 'ada' };
      return seal(keys, { challenge: newAsk().challenge, endsAt, by, from: randomUUID(), opens: randomUUID() }, place);
    };
    expect((await redeem(await code(Date.now() - 60_000))).body['detail']).toMatch(/expired after two minutes/);
    expect((await redeem(await code(Date.now() + 60_000))).status).toBe(403);
    for (const wrong of [await code(Date.now() + 60_000, 'console/sign-in'), 'eyJhbGciOiJkaXIifQ....']) {
      expect(await redeem(wrong)).toMatchObject({ status: 400, body: { detail: expect.stringMatching(/not valid/) } });
    }
  });

  it.each([
    ['lost their role', `DELETE FROM operator_grants WHERE email = 'bob@club.example'`],
    ['signed out', `UPDATE operator_sessions SET ended_at = now() WHERE name = 'bob@club.example'`],
  ])('is refused if the person %s before the command used the code', async (_what, sql) => {
    await grant('bob');
    const code = await codeFor('bob');
    await stage.query(sql);
    expect((await redeem(code)).status).toBe(403);
    expect(
      await stage.query(`SELECT FROM operator_sessions WHERE name = 'bob@club.example' AND ended_at IS NULL`),
    ).toHaveLength(sql.startsWith('DELETE') ? 1 : 0);
  });
});

describe('the page of /login for the command line', () => {
  it.each([
    ['a port of the system', { port: '1023' }],
    ['a port above all ports', { port: '65536' }],
    ['another host', { port: '80@evil.example' }],
    ['an empty challenge', { challenge: '' }],
    ['a state with another parameter', { state: `${'x'.repeat(43)}&code=y` }],
    ['another field', { host: 'evil.example' }],
  ])('refuses a command that asks with %s', async (_what, wrong) => {
    const ask = { ...newAsk(), ...wrong };
    expect((await sendAsIs(stage.app, `/login?${new URLSearchParams(ask).toString()}`)).status).toBe(400);
    const { cookie } = await open(askedUrl(), 'ada');
    expect((await answer(ask, { cookie, ...OWN_PAGE })).status).toBe(400);
  });

  it('accepts an answer only from its own form, within ten minutes after the sign-in', async () => {
    const { ask, cookie } = await open(askedUrl(), 'ada');
    expect((await answer(ask, { cookie, 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await answer(ask, OWN_PAGE)).status).toBe(401);
    expect((await answer(ask, { cookie: await logIn(stage.app), ...OWN_PAGE })).status).toBe(403);
    expect((await answer(ask, { cookie, ...OWN_PAGE })).status).toBe(200);
    await stage.query(`UPDATE operator_sessions SET created_at = now() - interval '11 minutes'`);
    stage.invalidateCache();
    expect((await answer(ask, { cookie, ...OWN_PAGE })).body['detail']).toMatch(/just now. Run expediter login again/);
  });

  it('redirects to the command without a code if the person refuses', async () => {
    const ask = newAsk();
    const { searchParams } = await press(askedUrl(ask), 'ada', false);
    expect(Object.fromEntries(searchParams)).toEqual({ error: 'access_denied', state: ask.state, iss: url });
    const [last] = await stage.query(
      `SELECT action, actor_name, outcome FROM audit JOIN audit_outcomes USING (audit_id) ORDER BY audit_id DESC LIMIT 1`,
    );
    expect(last).toEqual({ action: 'allow command line', actor_name: 'ada@club.example', outcome: 'refused' });
  });
});

it('a request for a device code is answered 410 with the advice to update the command line', async () => {
  expect(await post('/login/device', {})).toMatchObject({
    status: 410,
    body: { detail: expect.stringMatching(/was removed. Update the command line, or use expediter login --token/) },
  });
});

describe('expediter login', () => {
  /** Begins to sign in. @returns the URL that it prints, and its end */
  function begin(): { printed: Promise<string>; ended: Promise<Ended> } {
    const { promise: printed, resolve, reject } = Promise.withResolvers<string>();
    const ended = runCli({ XDG_CONFIG_HOME: home }, ['login', url], '', (words) => {
      const [found] = /http\S+\/login\?\S+/.exec(words) ?? [];
      if (found !== undefined) resolve(found);
    });
    void ended.then(({ error }) => reject(new Error(error)));
    return { printed, ended };
  }
  /** What the browser shows after it was sent to the command. */
  const visit = async (to: URL | string): Promise<string> => (await fetch(to)).text();

  it('prints a URL and signs in once the browser has sent the code', async () => {
    const { printed, ended } = begin();
    const to = await press(await printed);
    // Neither another page nor another machine can give it a code.
    expect(await visit(`${to.origin}/?code=x&state=x&iss=${url}`)).toMatch(/not started by the command here/);
    await expect(fetch(to.href.replace('127.0.0.1', '127.0.0.2'))).rejects.toThrow('fetch failed');
    expect(await visit(to)).toBe('You are signed in. Close this page.');
    expect(await ended).toMatchObject({ code: 0, error: expect.stringMatching(/In a remote shell, use .* --token/) });
    expect((await cli('location', 'show', 'club-1')).code).toBe(0);
    expect((await cli('logout')).out).toMatch(/signed out/);
  });

  it.each([
    ['of a person who refused', /refused in the browser/, 'error', 'access_denied'],
    ['from another service', /from another service/, 'iss', 'https://evil.example'],
    ['with a code that is wrong', /not valid/, 'code', 'x'],
  ])('exits 1 after an answer %s', async (_what, why, name, value) => {
    const { printed, ended } = begin();
    const to = await press(await printed);
    to.searchParams.set(name, value);
    expect(await visit(to)).toMatch(why);
    expect(await ended).toMatchObject({ code: 1, error: expect.stringMatching(why) });
  });

  it('exits 1 if nobody signs in within five minutes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { printed, ended } = begin();
    await printed;
    vi.advanceTimersByTime(5 * 60_000);
    expect(await ended).toMatchObject({ code: 1, error: expect.stringMatching(/Nobody signed in within 5 minutes/) });
  });

  it('names the right URL or --token if people cannot sign in at this URL', async () => {
    const elsewhere = await cli('login', url.replace('127.0.0.1', 'localhost'));
    expect(elsewhere).toMatchObject({ code: 2, error: expect.stringContaining(`People sign in at ${url}.`) });
    const without = await cli('login', await other.listen());
    expect(without).toMatchObject({ code: 1, error: expect.stringMatching(/cannot sign in here.* login --token/) });
  });
});

it('expediter login --token stores a token in a file that only its owner can read, until logout', async () => {
  const token = OPERATOR_TOKEN;
  const signedIn = await runCli({ XDG_CONFIG_HOME: home }, ['login', url, '--token'], `${token}\n`);
  expect(signedIn).toMatchObject({ code: 0, error: '' });
  expect(signedIn.out).not.toContain(token);
  const file = join(home, 'expediter', 'login.json');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ url, token });

  expect(await cli('location', 'show', 'club-1')).toMatchObject({ code: 0, error: '' });
  // DATABASE_URL is used before a login, and EXPEDITER_URL before both.
  const list = ['audit', 'list', '--limit', '1', '--as', 'ada'];
  expect((await runCli({ ...stage.env, XDG_CONFIG_HOME: home }, list)).code).toBe(0);
  const nowhere = await runCli(
    { ...stage.env, EXPEDITER_URL: `http://127.0.0.1:${await freePort()}`, EXPEDITER_TOKEN: token },
    ['location', 'list'],
  );
  expect(nowhere).toMatchObject({ code: 1, error: expect.stringMatching(/does not answer: ECONNREFUSED/) as string });

  expect(await cli('logout')).toMatchObject({ code: 0 });
  expect(await cli('logout')).toMatchObject({ code: 3 });
});

it("a command names NODE_EXTRA_CA_CERTS if the service's certificate is from a private authority", async () => {
  const [cert, key] = await Promise.all(['crt', 'key'].map((end) => readFile(new URL(`server.${end}`, TLS))));
  const server = createServer({ cert, key }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const at = `https://localhost:${(server.address() as AddressInfo).port}`;
  const said = await Promise.all([
    runCli({ EXPEDITER_URL: at, EXPEDITER_TOKEN: 'exo_wrong' }, ['location', 'list']),
    runCli({ XDG_CONFIG_HOME: home }, ['login', at]),
  ]);
  for (const { code, error } of said) {
    expect([code, error]).toEqual([1, expect.stringContaining('Set NODE_EXTRA_CA_CERTS to a file')]);
  }
  server.close();
});

it('expediter login --token sends no token over plain http to another machine', async () => {
  const login = (at: string): Promise<Ended> =>
    runCli({ XDG_CONFIG_HOME: home }, ['login', at, '--token'], 'exo_wrong');
  expect(await login('http://operators.example.com')).toMatchObject({
    code: 2,
    error: expect.stringContaining('https://') as string,
  });
  const wrong = await login(url);
  expect(wrong).toMatchObject({ code: 2, error: expect.stringContaining('does not accept this token') as string });
  expect(wrong.error).not.toContain('exo_wrong');
  expect(await cli('logout')).toMatchObject({ code: 3 });
});
