/** Who may no longer do something, and is quick, or lucky. */
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeToken } from '../../../src/core/domain/make-token.ts';
import { removeLocation } from '../../../src/core/locations/remove-location.ts';
import { pauseLocation } from '../../../src/core/locations/locations.ts';
import { digest } from '../../../src/core/operators/find-operator.ts';
import { OPERATOR_TOKEN, sendAsIs } from '../../support/ask-operator.ts';
import { readEvents, type ReadEvents } from '../../support/read-events.ts';
import { startSystem, type System } from '../../support/start-system.ts';
import { until } from '../../support/until.ts';

let system: System;
let url: string;

beforeAll(async () => {
  system = await startSystem({ env: { OPERATOR_TOKEN } });
  url = system.urls[0] ?? '';
  for (const id of ['club-1', 'club-2']) await system.addLocation(id, { ordersUrl: 'http://127.0.0.1:9/orders' });
});
afterAll(() => system?.stop());

async function named(roles: string[], locations: string[] | null = null): Promise<string> {
  const token = makeToken('exo_');
  await system.query(
    `INSERT INTO operator_tokens (token_id, sha256, name, roles, locations) VALUES ($1, $2, $3, $4, $5)`,
    [randomUUID(), digest(token), token.slice(0, 12), roles, locations],
  );
  return token;
}
const revoke = (token: string): Promise<unknown> =>
  system.query('UPDATE operator_tokens SET revoked_at = now() WHERE sha256 = $1', [digest(token)]);
const statusOf = async (token: string, path: string, method = 'GET'): Promise<number> =>
  (await sendAsIs(url, path, { method, headers: { authorization: `Bearer ${token}` } })).status;
const isPaused = async (id: string): Promise<boolean> =>
  (await system.query('SELECT paused_at FROM locations WHERE location_id = $1', [id]))[0]?.['paused_at'] !== null;

it('a token that cannot be looked up does nothing and reads nothing, and metrics go on', async () => {
  const token = await named(['operator']);
  expect(await statusOf(token, '/locations')).toBe(200);
  const holder = new pg.Client({ connectionString: system.databaseUrl });
  await holder.connect();
  try {
    await holder.query('BEGIN; LOCK TABLE operator_tokens IN ACCESS EXCLUSIVE MODE');
    // What was known is fresh for two seconds.
    await sleep(2_100);
    expect(await statusOf(token, '/locations/club-1/pause', 'POST')).toBe(503);
    expect(await statusOf(token, '/locations')).toBe(503);
    expect(await statusOf(token, '/metrics')).toBe(200);
  } finally {
    await holder.end();
  }
  expect(await isPaused('club-1')).toBe(false);
  await until(async () => (await statusOf(token, '/locations')) === 200);
}, 30_000);

it('a request that was begun before a token was revoked does nothing once its body is there', async () => {
  const token = await named(['operator']);
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST /locations/club-1/pause HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n` +
      'Content-Type: application/json\r\nContent-Length: 2\r\n\r\n',
  );
  await sleep(100);
  await revoke(token);
  await sleep(2_100);
  socket.write('{}');
  expect(await text(socket)).toMatch(/^HTTP\/1.1 403 /);
  expect(await isPaused('club-1')).toBe(false);
});

it('what was given at a location goes with it, and is not given by another of its id', async () => {
  const alone = await named(['admin'], ['club-2']);
  const both = await named(['viewer'], ['club-1', 'club-2']);
  await system.query(
    `INSERT INTO operator_grants (grant_id, group_name, roles, locations)
     VALUES (gen_random_uuid(), 'of one', '{viewer}', '{club-2}'), (gen_random_uuid(), 'of two', '{viewer}', '{club-1,club-2}')`,
  );
  await pauseLocation(system.pool, 'club-2');
  expect(await removeLocation(system.pool, 'club-2')).toMatchObject({ tokens: 0 });
  await system.addLocation('club-2', { ordersUrl: 'http://127.0.0.1:9/orders' });
  expect(await statusOf(alone, '/locations/club-2')).toBe(401);
  expect([await statusOf(both, '/locations/club-1'), await statusOf(both, '/locations/club-2')]).toEqual([200, 404]);
  expect(await system.query('SELECT group_name, locations FROM operator_grants')).toEqual([
    { group_name: 'of two', locations: ['club-1'] },
  ]);
});

it('who has some locations leaves streams for the others', async () => {
  const headers = { authorization: `Bearer ${await named(['viewer'], ['club-1'])}` };
  const open: ReadEvents[] = [];
  try {
    while (open.length < 50) {
      const stream = await readEvents(`${url}/live`, headers);
      open.push(stream);
      if (stream.status !== 200) break;
    }
    expect(open.map(({ status }) => status).slice(-2)).toEqual([200, 503]);
    expect(open).toHaveLength(41);
    open.push(await readEvents(`${url}/live`, { authorization: `Bearer ${OPERATOR_TOKEN}` }));
    expect(open.at(-1)?.status).toBe(200);
  } finally {
    for (const each of open) each.leave();
  }
});

it('no token has a name that may be taken for somebody else', async () => {
  for (const name of ['ada@bank.example', 'OPERATOR_TOKEN']) {
    const answer = await sendAsIs(url, '/operators/tokens', {
      method: 'POST',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name, roles: ['viewer'] }),
    });
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('taken for somebody else')]);
  }
});
