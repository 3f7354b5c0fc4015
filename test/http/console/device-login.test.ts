/** `expediter login`: a person signs in at a real OpenID provider by a device code, and commands then use the API. */
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OPERATOR_TOKEN } from '../../support/ask-operator.ts';
import { freePort } from '../../support/free-port.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { runCli } from '../../support/run-cli.ts';
import type { Ended } from '../../support/run-program.ts';
import { startOidcProvider, type OidcProvider } from '../../support/start-oidc-provider.ts';
import { until } from '../../support/until.ts';

const TLS = new URL('../../support/postgres-tls/', import.meta.url);

let oidc: OidcProvider;
let stage: Stage;
let url: string;
let home: string;

beforeAll(async () => {
  oidc = await startOidcProvider({ consoleUrl: `http://127.0.0.1:${await freePort()}`, offersDevices: true });
  oidc.people.set('ada', { email: 'ada@club.example', email_verified: true, groups: ['managers'] });
  oidc.people.set('eve', { email: 'eve@club.example', email_verified: true, groups: ['strangers'] });
  stage = await startStage({ env: { ...oidc.env, OPERATOR_TOKEN } });
  url = await stage.listen();
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await stage.query(`INSERT INTO operator_grants (grant_id, email, roles, locations)
                     VALUES (gen_random_uuid(), 'ada@club.example', '{viewer,integrator}', '{club-1}')`);
  home = await mkdtemp(join(tmpdir(), 'expediter-home-'));
});
afterAll(async () => {
  await stage?.stop();
  await oidc?.stop();
  if (home !== undefined) await rm(home, { recursive: true });
});

const cli = (...args: string[]): Promise<Ended> => runCli({ XDG_CONFIG_HOME: home }, args);
const post = async (path: string, body: object): Promise<{ status: number; body: Record<string, unknown> }> => {
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};

/** Does what a person does in a browser: opens the URL, confirms the code, signs in. */
async function approve(at: string, name: string): Promise<void> {
  const jar = new Map<string, string>();
  const visit = async (to: string, form?: Record<string, string>): Promise<string> => {
    const answer = await fetch(to, {
      redirect: 'manual',
      headers: { cookie: [...jar].map((pair) => pair.join('=')).join('; ') },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    });
    for (const cookie of answer.headers.getSetCookie()) {
      const [key = '', value = ''] = cookie.split(';', 1)[0]?.split('=') ?? [];
      jar.set(key, value);
    }
    const next = answer.headers.get('location');
    return next === null ? answer.text() : visit(new URL(next, to).href);
  };
  const device = new URL(at);
  const xsrfIn = (html: string): string => /name="xsrf" value="([^"]+)"/.exec(html)?.[1] ?? expect.fail(html);
  const userCode = device.searchParams.get('user_code') ?? '';
  const asked = await visit(at);
  const page = `${device.origin}${device.pathname}`;
  const confirm = await visit(page, { xsrf: xsrfIn(asked), user_code: userCode });
  const signIn = await visit(page, { xsrf: xsrfIn(confirm), user_code: userCode, confirm: 'yes' });
  expect(signIn).toContain('name="login"');
  const interaction = /action="([^"]+)"/.exec(signIn)?.[1];
  expect(await visit(interaction ?? lastInteraction(jar, oidc.issuer), { login: name })).not.toContain('error');
}
const lastInteraction = (jar: Map<string, string>, issuer: string): string =>
  `${issuer}/interaction/${jar.get('_interaction') ?? expect.fail('no sign-in began')}`;

it('gives a command the roles of the person who enters its code, until it signs out', async () => {
  const begun = await post('/login/device', {});
  expect(begun).toMatchObject({ status: 200, body: { userCode: expect.stringMatching(/^[A-Z-]{8,}$/) as string } });
  const { handle, verificationUriComplete } = begun.body as Record<string, string>;
  expect(await post('/login/token', { handle })).toMatchObject({ status: 200, body: { state: 'pending' } });

  await approve(String(verificationUriComplete), 'ada');
  const done = await until(async () => {
    const polled = await post('/login/token', { handle });
    return polled.body['state'] === 'done' ? polled : undefined;
  });
  const token = String(done.body['token']);
  // The code opens one session.
  expect(await post('/login/token', { handle })).toMatchObject({ status: 403 });

  const ask = (path: string, method = 'GET'): Promise<number> =>
    fetch(url + path, { method, headers: { authorization: `Bearer ${token}` } }).then(({ status }) => status);
  expect(await ask('/v1/locations/club-1')).toBe(200);
  expect(await ask('/v1/operators/sessions')).toBe(403);
  // It is no credential for another session, and no cookie is needed.
  expect(await post('/console/session', { token })).toMatchObject({ status: 403 });
  expect(
    await stage.query(
      `SELECT actor_name, outcome FROM audit JOIN audit_outcomes USING (audit_id) WHERE action = 'sign in'`,
    ),
  ).toEqual([{ actor_name: 'ada@club.example', outcome: 'done' }]);
  expect(await ask('/login', 'DELETE')).toBe(204);
  await until(async () => (await ask('/v1/locations/club-1')) === 401);
});

it('gives none to a person who may not sign in, which is written down', async () => {
  const { handle, verificationUriComplete } = (await post('/login/device', {})).body as Record<string, string>;
  await approve(String(verificationUriComplete), 'eve');
  const refused = await until(async () => {
    const polled = await post('/login/token', { handle });
    return polled.status === 403 ? polled : undefined;
  });
  expect(refused.body['detail']).toMatch(/not one of the people/);
  const written = await stage.query(
    `SELECT outcome, after FROM audit JOIN audit_outcomes USING (audit_id) WHERE actor_name LIKE 'eve%'`,
  );
  expect(written).toEqual([{ outcome: 'refused', after: 'not_allowed' }]);
});

it('takes no handle that it did not make', async () => {
  for (const handle of ['x', 'eyJhbGciOiJkaXIifQ....']) {
    expect(await post('/login/token', { handle })).toMatchObject({ status: 400 });
  }
});

it('stores a named token for commands, which only its owner can read, and forgets it', async () => {
  const { stdout: token } = { stdout: OPERATOR_TOKEN };
  const signedIn = await runCli({ XDG_CONFIG_HOME: home }, ['login', url, '--token'], `${token}\n`);
  expect(signedIn).toMatchObject({ code: 0, error: '' });
  expect(signedIn.out).not.toContain(token);
  const file = join(home, 'expediter', 'login.json');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ url, token });

  expect(await cli('location', 'show', 'club-1')).toMatchObject({ code: 0, error: '' });
  // DATABASE_URL is used before a login, and EXPEDITER_URL before both.
  const database = await runCli({ ...stage.env, XDG_CONFIG_HOME: home }, [
    'audit',
    'list',
    '--limit',
    '1',
    '--json',
    '--as',
    'ada',
  ]);
  expect(database.code).toBe(0);
  const nowhere = await runCli(
    { ...stage.env, EXPEDITER_URL: `http://127.0.0.1:${await freePort()}`, EXPEDITER_TOKEN: token },
    ['location', 'list'],
  );
  expect(nowhere).toMatchObject({ code: 1, error: expect.stringMatching(/does not answer: ECONNREFUSED/) as string });

  expect(await cli('logout')).toMatchObject({ code: 0 });
  expect(await cli('logout')).toMatchObject({ code: 3 });
});

it('says how to trust a service whose certificate is of an authority of its own', async () => {
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

it('sends no token over plain http to another machine, and stores none that is wrong', async () => {
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
