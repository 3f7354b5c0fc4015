/** Streams end with what let their reader in, at a process that did not change it. */
import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { digest } from '../../../src/core/operators/find-operator.ts';
import { BY_OPERATOR_TOKEN, type Operator } from '../../../src/core/operators/operator.ts';
import { openStream } from '../../../src/http/operator/event-stream.ts';
import { OPERATOR_TOKEN, sendAsIs } from '../../../world/system/ask-operator.ts';
import { OWN_PAGE, giveRoles, logIn, nameToken } from '../../../world/system/log-in.ts';
import { readEvents, type ReadEvents } from '../../support/read-events.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';

let stage: Stage;
/** Another process. */
let other: Stage;
let there: string;
const open: ReadEvents[] = [];

beforeAll(async () => {
  stage = await startStage();
  other = await startStage({ databaseUrl: stage.databaseUrl });
  there = await other.listen();
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await stage.seedOrder({ serviceOrderId: 'order-1', locationId: 'club-1' });
});
afterAll(async () => {
  for (const each of open) each.leave();
  await Promise.all([other?.stop(), stage?.stop()]);
});

/** A session of a person with two grants. */
async function person(name: string): Promise<string> {
  const cookie = randomUUID().replaceAll('-', '').padEnd(43, 'x');
  await stage.query(
    `INSERT INTO operator_sessions (session_id, sha256, kind, actor_id, name, email, groups, expires_at)
     VALUES ($1, $2, 'person', $3, $3, $3, '{team}', now() + interval '1 h')`,
    [randomUUID(), digest(cookie), name],
  );
  await giveRoles(stage, { email: name }, ['operator'], ['club-1']);
  return `expediter_session=${cookie}`;
}

/** Opens the board and an order at the process that will not be told. @returns when each has ended */
async function follow(headers: Record<string, string>): Promise<Promise<unknown>[]> {
  const prefix = 'cookie' in headers ? '/console/api' : '/v1';
  const both = await Promise.all(
    ['/live', '/orders/order-1/live'].map((path) => readEvents(`${there}${prefix}${path}`, headers)),
  );
  open.push(...both);
  expect(both.map(({ status }) => status)).toEqual([200, 200]);
  return both.map(({ ended }) => ended.catch(() => {}));
}

const send = async (path: string, headers: Record<string, string>, method: string): Promise<void> => {
  const { status } = await sendAsIs(stage.app, path, { method, headers: { ...headers, ...OWN_PAGE } });
  expect([200, 204], path).toContain(status);
};
const sessionId = async (name: string): Promise<string> =>
  String((await stage.query('SELECT session_id FROM operator_sessions WHERE name = $1', [name]))[0]?.['session_id']);

it("a stream ends when its reader's token, session or grant ends", async () => {
  await giveRoles(stage, { group: 'team' }, ['viewer']);
  const bearer = async (name: string): Promise<Record<string, string>> => ({
    authorization: `Bearer ${await nameToken(stage, name)}`,
  });
  const session = async (name: string): Promise<Record<string, string>> => ({
    cookie: await logIn(stage.app, await nameToken(stage, name)),
  });
  const admin = { authorization: `Bearer ${OPERATOR_TOKEN}` };
  const set = (column: string, name: string): Promise<unknown> =>
    stage.query(`UPDATE operator_tokens SET ${column} = now() WHERE name = $1`, [name]);
  /** Who reads, and what ends it. */
  const cases: [Record<string, string>, (who: Record<string, string>) => Promise<unknown>][] = [
    [await session('signs out'), (who) => send('/console/session', who, 'DELETE')],
    [await session('signs out everywhere'), (who) => send('/console/sessions', who, 'DELETE')],
    [await session('c'), async () => send(`/v1/operators/sessions/${await sessionId('c')}/revoke`, admin, 'POST')],
    [await bearer('d'), () => set('revoked_at', 'd')],
    [await session('e'), () => set('revoked_at', 'e')],
    [await bearer('f'), () => set('expires_at', 'f')],
    [{ cookie: await person('g') }, () => stage.query(`DELETE FROM operator_grants WHERE email = 'g'`)],
  ];
  let stayed = 0;
  for (const who of [admin, await session('stays'), { cookie: await person('stays as well') }]) {
    for (const ended of await follow(who)) void ended.then(() => (stayed -= 1));
    stayed += 2;
  }
  await Promise.all(
    cases.map(async ([who, action]) => {
      const following = await follow(who);
      await action(who);
      await Promise.all(following);
    }),
  );
  expect(stayed).toBe(6);
});

describe('a stream of an operator', () => {
  const began = new Date();
  const reader = {
    ...BY_OPERATOR_TOKEN,
    session: { sessionId: 'a', openedAt: began, signedInAt: began, expiresAt: began },
  };
  const openAt = (now: Date, identifyAgain: () => Promise<Operator | undefined>): { isClosed: boolean } => {
    vi.useFakeTimers({ now: 0, toFake: ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval'] });
    const request = { operator: reader, identifyAgain } as unknown as FastifyRequest;
    const shared = { closing: new AbortController().signal, now: () => now, streams: new Map() };
    const stream = openStream(stage.app, request, shared);
    const state = { isClosed: false };
    stream.onClose(() => (state.isClosed = true));
    return state;
  };
  afterEach(() => vi.useRealTimers());

  it('ends when its session expires', async () => {
    const state = openAt(new Date(began.getTime() - 60_500), () => Promise.resolve(reader));
    await vi.advanceTimersByTimeAsync(60_499);
    expect(state.isClosed).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(state.isClosed).toBe(true);
  });

  it('is cut off within five seconds after its reader loses the rights', async () => {
    let rights: Operator['rights'] = reader.rights;
    const state = openAt(new Date(began.getTime() - 600_000), () => Promise.resolve({ ...reader, rights }));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(state.isClosed).toBe(false);
    rights = [];
    await vi.advanceTimersByTimeAsync(3_000);
    expect(state.isClosed).toBe(true);
  });
});
