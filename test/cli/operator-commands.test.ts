import { userInfo } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATOR_TOKEN, sendAsIs } from '../support/ask-operator.ts';
import { logIn } from '../support/log-in.ts';
import { runCli } from '../support/run-cli.ts';
import { runJson } from '../support/run-json.ts';
import type { Ended } from '../support/run-program.ts';
import { startSystem, type System } from '../support/start-system.ts';
import { until } from '../support/until.ts';

type Issued = { tokenId: string; token: string; createdAt: string; expiresAt: string | null };

let system: System;
let env: Record<string, string>;

beforeAll(async () => {
  system = await startSystem({ env: { OPERATOR_TOKEN } });
  env = { ...system.env };
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
});
afterAll(() => system?.stop());

const statusOf = async (token: string, path: string): Promise<number> =>
  (await sendAsIs(system.urls[0] ?? '', path, { headers: { authorization: `Bearer ${token}` } })).status;
const acts = (): Promise<Record<string, unknown>[]> =>
  system.query(
    `SELECT actor_kind, actor_id, did, subject, outcome, after FROM audit JOIN audit_outcomes USING (audit_id)
     WHERE actor_kind = 'command_line' AND location_id IS NULL ORDER BY audit_id DESC`,
  );
const by = { actor_kind: 'command_line', actor_id: userInfo().username };

describe('expediter operator token', () => {
  it('issues one that opens what its roles say, lists it without its secret, and revokes it', async () => {
    const args = ['operator', 'token', 'issue', '--name', 'anna', '--role', 'operator,viewer', '--role', 'member-data'];
    const issued = await runJson<Issued>(env, [...args, '--locations', 'club-1', '--expires', '90d']);
    const may = { roles: ['viewer', 'operator', 'member-data'], locations: ['club-1'] };
    expect(issued).toMatchObject({ name: 'anna', ...may, state: 'valid', expiresAt: expect.any(String) });
    expect(await statusOf(issued.token, '/locations/club-1')).toBe(200);
    expect(await statusOf(issued.token, '/metrics')).toBe(403);

    expect(await runJson(env, ['operator', 'token', 'list'])).toMatchObject([{ tokenId: issued.tokenId, ...may }]);
    const { out } = await runCli(env, ['operator', 'token', 'list']);
    expect(out).toMatch(/ anna +viewer,operator,member-data at club-1 +valid /);
    expect(out).not.toContain('exo_');

    const revoked = await runCli(env, ['operator', 'token', 'revoke', issued.tokenId]);
    expect(revoked).toMatchObject({ code: 0, out: expect.stringContaining('revoked') });
    await until(async () => (await statusOf(issued.token, '/locations/club-1')) === 401);
    const after = `${issued.tokenId} anna: viewer,operator,member-data at club-1`;
    expect((await acts()).slice(0, 2)).toEqual([
      { ...by, did: 'revoke token', subject: issued.tokenId, outcome: 'done', after },
      { ...by, did: 'issue token', subject: null, outcome: 'done', after },
    ]);
  });

  it('shows the token to people too, and that it opens all locations', async () => {
    const { out } = await runCli(env, ['operator', 'token', 'issue', '--name', 'ben', '--role', 'admin']);
    expect(out).toMatch(/^token +exo_[\w-]{49}$/m);
    expect(out).toMatch(/^may +admin at all locations$/m);
  });

  it.each<[string, string[], number | null]>([
    ['ends in 90 days unless it is said', [], 90 * 86_400],
    ['may never end', ['--expires', 'never'], null],
  ])('%s', async (_what, expires, seconds) => {
    const args = ['operator', 'token', 'issue', '--name', `kim ${expires.length}`, '--role', 'viewer', ...expires];
    const { createdAt, expiresAt } = await runJson<Issued>(env, args);
    expect(expiresAt && (Date.parse(expiresAt) - Date.parse(createdAt)) / 1_000).toBe(seconds);
  });

  it('says in one line why none is issued', async () => {
    const issue = (...args: string[]): Promise<Ended> =>
      runCli(env, ['operator', 'token', 'issue', '--name', 'ben', ...args]);
    expect(await issue('--role', 'viewer')).toEqual({
      code: 1,
      out: '',
      error: 'error: a valid token is called "ben": revoke that, or take another name\n',
    });
    expect(await issue('--role', 'viewer,root')).toEqual({
      code: 2,
      out: '',
      error: expect.stringMatching(/^error: roles\.1: is none of viewer, operator.*\n$/),
    });
    expect(await issue('--role', 'viewer', '--expires', '2020-01-31')).toMatchObject({ code: 2, out: '' });
  });
});

describe('expediter operator grant', () => {
  it('gives roles to an address and to a group, lists them, and takes them', async () => {
    const add = ['operator', 'grant', 'add', '--role', 'viewer'];
    type Grant = { grantId: string };
    const anna = await runJson<Grant>(env, [...add, '--email', 'Anna@Example.com', '--locations', 'club-1']);
    const group = await runJson<Grant>(env, [...add, '--group', 'kitchen managers']);
    expect(await runJson(env, ['operator', 'grant', 'list'])).toMatchObject([
      { grantId: anna.grantId, email: 'anna@example.com', group: null, locations: ['club-1'] },
      { grantId: group.grantId, email: null, group: 'kitchen managers', locations: null },
    ]);
    const { out } = await runCli(env, ['operator', 'grant', 'list']);
    expect(out).toMatch(/ anna@example\.com .* viewer at club-1 /);
    expect(await runCli(env, ['operator', 'grant', 'remove', anna.grantId])).toMatchObject({
      code: 0,
      out: expect.stringContaining('anna@example.com: viewer at club-1'),
    });
    expect(await runJson(env, ['operator', 'grant', 'list'])).toMatchObject([{ grantId: group.grantId }]);
    const after = `${anna.grantId} anna@example.com: viewer at club-1`;
    expect((await acts()).slice(0, 3)).toMatchObject([
      { did: 'take roles', outcome: 'done', subject: anna.grantId, after },
      {
        ...by,
        did: 'give roles',
        outcome: 'done',
        after: expect.stringMatching(/^[0-9a-f-]{36} kitchen managers: viewer at all locations$/) as string,
      },
      { ...by, did: 'give roles', outcome: 'done', after },
    ]);
  });
});

describe('expediter operator session', () => {
  it('lists who is signed in, and shuts a browser out', async () => {
    const issued = await runJson<Issued>(env, ['operator', 'token', 'issue', '--name', 'laptop', '--role', 'viewer']);
    const cookie = await logIn(system.urls[0] ?? '', issued.token);
    const opens = async (): Promise<boolean> =>
      (await sendAsIs(system.urls[0] ?? '', '/console/session', { headers: { cookie } })).status === 200;
    expect(await opens()).toBe(true);

    const listed = await runJson<{ sessionId: string; name: string }[]>(env, ['operator', 'session', 'list']);
    const { sessionId = '' } = listed.find(({ name }) => name === 'laptop') ?? {};
    expect((await runCli(env, ['operator', 'session', 'list'])).out).toMatch(/laptop .*127\.0\.0\.1/);
    expect(await runJson(env, ['operator', 'session', 'revoke', sessionId])).toEqual({ sessionId, revoked: true });
    await until(async () => !(await opens()));
    expect((await acts())[0]).toMatchObject({ ...by, did: 'revoke session', subject: sessionId, outcome: 'done' });
  });
});
