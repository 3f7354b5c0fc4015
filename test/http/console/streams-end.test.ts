/** Streams end with what let their reader in, at a process that did not change it. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeToken } from '../../../src/core/domain/make-token.ts';
import { digest } from '../../../src/core/operators/find-operator.ts';
import { OPERATOR_TOKEN, sendAsIs } from '../../support/ask-operator.ts';
import { OWN_PAGE, logIn } from '../../support/log-in.ts';
import { readEvents, type ReadEvents } from '../../support/read-events.ts';
import { startSystem, type System } from '../../support/start-system.ts';

let system: System;
let [here, there] = ['', ''];
const open: ReadEvents[] = [];

beforeAll(async () => {
  system = await startSystem({ env: { OPERATOR_TOKEN }, processes: 2 });
  [here = '', there = ''] = system.urls;
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await system.seedOrder({ serviceOrderId: 'order-1', locationId: 'club-1' });
});
afterAll(async () => {
  for (const each of open) each.leave();
  await system?.stop();
});

async function named(name: string): Promise<string> {
  const token = makeToken('exo_');
  await system.query(`INSERT INTO operator_tokens (token_id, sha256, name, roles) VALUES ($1, $2, $3, '{viewer}')`, [
    randomUUID(),
    digest(token),
    name,
  ]);
  return token;
}

/** A session of a person with two grants. */
async function person(name: string): Promise<string> {
  const cookie = randomUUID().replaceAll('-', '').padEnd(43, 'x');
  await system.query(
    `INSERT INTO operator_sessions (session_id, sha256, kind, actor_id, name, email, groups, expires_at)
     VALUES ($1, $2, 'person', $3, $3, $3, '{team}', now() + interval '1 h')`,
    [randomUUID(), digest(cookie), name],
  );
  await system.query(
    `INSERT INTO operator_grants (grant_id, email, roles, locations) VALUES ($1, $2, '{operator}', '{club-1}')`,
    [randomUUID(), name],
  );
  return `expediter_session=${cookie}`;
}

/** Opens the board and an order at the process that will not be told. @returns when each has ended */
async function follow(headers: Record<string, string>): Promise<Promise<number>[]> {
  const prefix = 'cookie' in headers ? '/console/api' : '';
  const both = await Promise.all(
    ['/live', '/orders/order-1/live'].map((path) => readEvents(`${there}${prefix}${path}`, headers)),
  );
  open.push(...both);
  expect(both.map(({ status }) => status)).toEqual([200, 200]);
  return both.map(async ({ ended }) => ended.catch(() => {}).then(() => performance.now()));
}

const send = async (path: string, headers: Record<string, string>, method: string): Promise<void> => {
  const { status } = await sendAsIs(here, path, { method, headers: { ...headers, ...OWN_PAGE } });
  expect([200, 204], path).toContain(status);
};
const sessionId = async (name: string): Promise<string> =>
  String((await system.query('SELECT session_id FROM operator_sessions WHERE name = $1', [name]))[0]?.['session_id']);

it('a stream ends within five seconds of what let its reader in, and no other does', { timeout: 30_000 }, async () => {
  await system.query(`INSERT INTO operator_grants (grant_id, group_name, roles) VALUES ($1, 'team', '{viewer}')`, [
    randomUUID(),
  ]);
  const bearer = async (name: string): Promise<Record<string, string>> => ({
    authorization: `Bearer ${await named(name)}`,
  });
  const session = async (name: string): Promise<Record<string, string>> => ({
    cookie: await logIn(here, await named(name)),
  });
  const admin = { authorization: `Bearer ${OPERATOR_TOKEN}` };
  const cases: Record<string, { who: Record<string, string>; act: (who: Record<string, string>) => Promise<unknown> }> =
    {
      'signed out': { who: await session('a'), act: (who) => send('/console/session', who, 'DELETE') },
      'signed out everywhere': { who: await session('b'), act: (who) => send('/console/sessions', who, 'DELETE') },
      'session revoked': {
        who: await session('c'),
        act: async () => send(`/operators/sessions/${await sessionId('c')}/revoke`, admin, 'POST'),
      },
      'token revoked': {
        who: await bearer('d'),
        act: () => system.query(`UPDATE operator_tokens SET revoked_at = now() WHERE name = 'd'`),
      },
      'token of the session revoked': {
        who: await session('e'),
        act: () => system.query(`UPDATE operator_tokens SET revoked_at = now() WHERE name = 'e'`),
      },
      'token expired': {
        who: await bearer('f'),
        act: () => system.query(`UPDATE operator_tokens SET expires_at = now() WHERE name = 'f'`),
      },
      'a role taken': {
        who: { cookie: await person('g') },
        act: () => system.query(`DELETE FROM operator_grants WHERE email = 'g'`),
      },
    };
  const staying = {
    OPERATOR_TOKEN: admin,
    session: await session('stays'),
    person: { cookie: await person('stays as well') },
  };
  let stayed = 0;
  for (const who of Object.values(staying)) {
    for (const ended of await follow(who)) void ended.then(() => (stayed -= 1));
    stayed += 2;
  }
  const taken: Record<string, number[]> = {};
  await Promise.all(
    Object.entries(cases).map(async ([what, { who, act }]) => {
      const following = await follow(who);
      await act(who);
      const began = performance.now();
      taken[what] = await Promise.all(following.map(async (ended) => (await ended) - began));
    }),
  );
  expect(Object.keys(taken)).toHaveLength(Object.keys(cases).length);
  for (const [what, both] of Object.entries(taken)) {
    for (const milliseconds of both) expect(milliseconds, what).toBeLessThan(5_000);
  }
  expect(stayed).toBe(6);
});

it('a stream does not outlive its session, which nobody ends', async () => {
  const cookie = await logIn(here, await named('expires'));
  await system.query(`UPDATE operator_sessions SET expires_at = now() + interval '1200 ms' WHERE name = 'expires'`);
  const began = performance.now();
  for (const ended of await follow({ cookie })) {
    const lived = (await ended) - began;
    expect(lived).toBeGreaterThan(900);
    // Before its reader would be looked at again.
    expect(lived).toBeLessThan(1_900);
  }
});
