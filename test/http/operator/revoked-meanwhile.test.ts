/** Who may no longer do something, and is quick, or lucky. */
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { digest } from '../../../src/core/operators/find-operator.ts';
import { OPERATOR_TOKEN, sendAsIs } from '../../../world/system/ask-operator.ts';
import { nameToken } from '../../../world/system/log-in.ts';
import { readEvents, type ReadEvents } from '../../support/read-events.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { until } from '../../../world/processes/until.ts';

let stage: Stage;
let url: string;

beforeAll(async () => {
  stage = await startStage();
  url = await stage.listen();
  for (const id of ['club-1', 'club-2']) await stage.addLocation(id, { ordersUrl: 'http://127.0.0.1:9/orders' });
});
afterAll(() => stage?.stop());

const named = (roles: string[], locations: string[] | null = null): Promise<string> =>
  nameToken(stage, randomUUID(), roles, locations);
const revoke = (token: string): Promise<unknown> =>
  stage.query('UPDATE operator_tokens SET revoked_at = now() WHERE sha256 = $1', [digest(token)]);
const setGroups = (groups: string[], id = 'club-1'): Promise<unknown> =>
  stage.query('UPDATE locations SET groups = $2 WHERE location_id = $1', [id, groups]);
const statusOf = async (token: string, path: string, method = 'GET'): Promise<number> =>
  (await sendAsIs(url, path, { method, headers: { authorization: `Bearer ${token}` } })).status;
const isPaused = async (id: string): Promise<boolean> =>
  (await stage.query('SELECT paused_at FROM locations WHERE location_id = $1', [id]))[0]?.['paused_at'] !== null;

it('a request is answered 503 if its token cannot be looked up, except a request for /metrics', async () => {
  const token = await named(['operator']);
  expect(await statusOf(token, '/v1/locations')).toBe(200);
  // Nobody but the owner can read the table, as where its disk is full.
  await stage.query(
    `CREATE FUNCTION fail() RETURNS boolean LANGUAGE plpgsql AS
     $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END $$`,
  );
  await stage.query('CREATE POLICY away ON operator_tokens USING (fail())');
  try {
    await stage.query('ALTER TABLE operator_tokens ENABLE ROW LEVEL SECURITY');
    stage.invalidateCache();
    expect(await statusOf(token, '/v1/locations/club-1/pause', 'POST')).toBe(503);
    expect(await statusOf(token, '/v1/locations')).toBe(503);
    expect(await statusOf(token, '/metrics')).toBe(200);
  } finally {
    await stage.query('ALTER TABLE operator_tokens DISABLE ROW LEVEL SECURITY');
  }
  expect(await isPaused('club-1')).toBe(false);
  stage.invalidateCache();
  expect(await statusOf(token, '/v1/locations')).toBe(200);
});

it.each([
  ['does nothing once its token is revoked', revoke, 403],
  ['does nothing once its location has left the group', () => setGroups([]), 404],
  ['is done if only another location has joined the group', () => setGroups(['g', 'other'], 'club-2'), 200],
] as const)('a request whose body arrives late %s', async (_what, change, status) => {
  await setGroups(['g']);
  await stage.query('UPDATE locations SET paused_at = NULL');
  const token = await nameToken(stage, randomUUID(), ['operator'], [], ['g']);
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST /v1/locations/club-1/pause HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n` +
      'Content-Type: application/json\r\nContent-Length: 2\r\n\r\n',
  );
  // It was let in.
  const used = 'SELECT FROM operator_tokens WHERE sha256 = $1 AND last_used_at IS NOT NULL';
  await until(async () => (await stage.query(used, [digest(token)])).length > 0);
  await change(token);
  stage.invalidateCache();
  socket.write('{}');
  expect(await text(socket)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(await isPaused('club-1')).toBe(status === 200);
});

it('an operator of one location can open forty streams, and leaves the other streams for other operators', async () => {
  const headers = { authorization: `Bearer ${await named(['viewer'], ['club-1'])}` };
  const open: ReadEvents[] = [];
  try {
    while (open.length < 50) {
      const stream = await readEvents(`${url}/v1/live`, headers);
      open.push(stream);
      if (stream.status !== 200) break;
    }
    expect(open.map(({ status }) => status).slice(-2)).toEqual([200, 503]);
    expect(open).toHaveLength(41);
    open.push(await readEvents(`${url}/v1/live`, { authorization: `Bearer ${OPERATOR_TOKEN}` }));
    expect(open.at(-1)?.status).toBe(200);
  } finally {
    for (const each of open) each.leave();
  }
});
