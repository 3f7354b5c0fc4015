import { afterAll, beforeAll, expect, it } from 'vitest';
import { sendAsIs } from '../../world/system/ask-operator.ts';
import { logIn } from '../../world/system/log-in.ts';
import { startStage, type Stage } from '../support/operator-stage.ts';
import { runCli } from '../support/run-cli.ts';
import { runJson } from '../support/run-json.ts';
import { runRefused } from '../support/run-refused.ts';

type Issued = { tokenId: string; token: string; createdAt: string; expiresAt: string | null };

let stage: Stage;

beforeAll(async () => {
  stage = await startStage();
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
});
afterAll(() => stage?.stop());

const outOf = async (...args: string[]): Promise<string> => (await runCli(stage.env, ['operator', ...args])).out;
const json = <Value>(...args: string[]): Promise<Value> => runJson<Value>(stage.env, ['operator', ...args]);
const statusOf = async (token: string, path: string): Promise<number> =>
  (await sendAsIs(stage.app, path, { headers: { authorization: `Bearer ${token}` } })).status;

it('a named token has the rights of its roles, and is printed only when it is issued', async () => {
  const args = ['token', 'issue', '--name', 'anna', '--role', 'operator,viewer', '--role', 'member-data'];
  const { token, tokenId } = await json<Issued>(...args, '--locations', 'club-1', '--expires', '90d');
  expect(await statusOf(token, '/v1/locations/club-1')).toBe(200);
  expect(await statusOf(token, '/metrics')).toBe(403);
  const listed = await outOf('token', 'list');
  expect(listed).toMatch(new RegExp(`^${tokenId} +anna +viewer,operator,member-data at club-1 +valid `, 'm'));
  expect(listed).not.toContain('exo_');
  expect(await outOf('token', 'revoke', tokenId)).toContain('revoked');
  stage.invalidateCache();
  expect(await statusOf(token, '/v1/locations/club-1')).toBe(401);

  const words = await outOf('token', 'issue', '--name', 'ben', '--role', 'admin');
  expect(words).toMatch(/^token +exo_[\w-]{49}$/m);
  expect(words).toMatch(/^may +admin at all locations$/m);
});

it.each<[string, string[], number | null]>([
  ['expires in 90 days by default', [], 90 * 86_400],
  ['never expires if requested', ['--expires', 'never'], null],
])('a named token %s', async (_what, expires, seconds) => {
  const args = ['token', 'issue', '--name', `kim ${expires.length}`, '--role', 'viewer', ...expires];
  const { createdAt, expiresAt } = await json<Issued>(...args);
  expect(expiresAt && (Date.parse(expiresAt) - Date.parse(createdAt)) / 1_000).toBe(seconds);
});

it.each([
  ['a name that is taken', ['--role', 'viewer'], 1, /^error: a valid token is called "ben": [^\n]+\n$/],
  ['an unknown role', ['--role', 'viewer,root'], 2, /^error: roles\.1 must be one of viewer, [^\n]+\n$/],
  ['no role', [], 2, /--role/],
  ['an expiry in the past', ['--role', 'viewer', '--expires', '2020-01-31'], 2, /in the future/],
])('no token is issued for %s', async (_what, args, code, says) => {
  expect(await runRefused(code, stage.env, ['operator', 'token', 'issue', '--name', 'ben', ...args])).toMatch(says);
});

it('roles are granted to an address and to a group, listed and removed', async () => {
  const add = ['grant', 'add', '--role', 'viewer'];
  const anna = await json<{ grantId: string }>(...add, '--email', 'Anna@Example.com', '--locations', 'club-1');
  const group = await json<{ grantId: string }>(...add, '--group', 'kitchen managers');
  const listed = await outOf('grant', 'list');
  expect(listed).toMatch(new RegExp(`^${anna.grantId} +anna@example.com +viewer at club-1 `, 'm'));
  expect(listed).toMatch(new RegExp(`^${group.grantId} +kitchen managers +viewer at all locations `, 'm'));
  expect(await outOf('grant', 'remove', anna.grantId)).toContain('anna@example.com: viewer at club-1');
  expect(await json('grant', 'list')).toMatchObject([{ grantId: group.grantId }]);
});

it('people who are signed in are listed, and one of them can be signed out', async () => {
  const { token } = await json<Issued>('token', 'issue', '--name', 'laptop', '--role', 'viewer');
  const cookie = await logIn(await stage.listen(), token);
  const opens = async (): Promise<boolean> =>
    (await sendAsIs(stage.app, '/console/session', { headers: { cookie } })).status === 200;
  expect(await opens()).toBe(true);
  const [session] = await json<{ sessionId: string; name: string }[]>('session', 'list');
  expect(session?.name).toBe('laptop');
  expect(await outOf('session', 'list')).toMatch(/laptop .*127\.0\.0\.1/);
  expect(await outOf('session', 'revoke', session?.sessionId ?? '')).toContain('is ended');
  stage.invalidateCache();
  expect(await opens()).toBe(false);
});
