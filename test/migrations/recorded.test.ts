/** What each released version wrote is read by this one. Recorded by tools/chaos/record-version.ts: rows, and a webhook in the spill. */
import { execFileSync } from 'node:child_process';
import { copyFile, mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PubSub } from '@google-cloud/pubsub';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrate } from '../../src/database/migrate.ts';
import { OPERATOR_TOKEN, askOperator, sendAsIs, type Operator } from '../../world/system/ask-operator.ts';
import { createEmptyDatabase } from '../../world/postgres/create-database.ts';
import { OWN_PAGE } from '../../world/system/log-in.ts';
import { blind } from '../../world/pos/pos-without-deduplication.ts';
import { readBody, sendJson, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { startOrderingPlatform, type OrderingPlatform } from '../../world/platform/start-ordering-platform.ts';
import { startPos, type Pos, type StatusReport } from '../../world/pos/start-pos.ts';
import { PROJECT, startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

const ROOT = new URL('../../', import.meta.url);
const RECORDED = new URL('recorded/', import.meta.url);

type Row = Record<string, unknown>;
type Known = {
  tokens: Record<string, string>;
  operatorToken: string;
  cookie: string;
  secret: string;
  otherSecret: string;
  spilled: string[];
};
type Head = { recordedAt: string; migrations: string[]; known: Known };
type Recording = Head & { rows: Map<string, Row[]> };

const recordings = (await readdir(RECORDED)).map((file) => file.replace(/\.jsonl$/, ''));

async function read(version: string): Promise<Recording> {
  const lines = (await readFile(new URL(`${version}.jsonl`, RECORDED), 'utf8')).trimEnd().split('\n');
  const [head, ...tables] = lines.map((line) => JSON.parse(line) as unknown);
  return {
    ...(head as Head),
    rows: new Map((tables as { table: string; rows: Row[] }[]).map(({ table, rows }) => [table, rows])),
  };
}

/** Makes the schema of that version, inserts its rows as if they had been written a minute ago, and migrates. */
async function restore({ migrations, recordedAt, rows }: Recording): Promise<string> {
  const url = await createEmptyDatabase();
  const dir = await mkdtemp(join(tmpdir(), 'released-'));
  for (const name of migrations) await copyFile(new URL(`migrations/${name}.sql`, ROOT), join(dir, `${name}.sql`));
  await migrate(url, { dir });
  await rm(dir, { recursive: true });
  const client = new pg.Client(url);
  await client.connect();
  // References are checked by no statement, so the order of the tables does not matter.
  await client.query('SET session_replication_role = replica');
  for (const { day } of rows.get('webhooks') ?? []) await client.query('SELECT ensure_webhook_partition($1)', [day]);
  for (const [table, all] of rows) {
    await client.query(`DELETE FROM ${table}`);
    await client.query(
      `INSERT INTO ${table} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::${table}, $1)`,
      [JSON.stringify(all)],
    );
    // A webhook stays when it was, since its signature is valid for that time only.
    if (table === 'webhooks') continue;
    const { rows: columns } = await client.query<{ name: string }>(
      `SELECT column_name AS name FROM information_schema.columns
       WHERE table_schema = 'expediter' AND table_name = $1 AND data_type = 'timestamp with time zone'`,
      [table],
    );
    const moved = columns.map(({ name }) => `${name} = ${name} + (now() - $1::timestamptz) - interval '1 min'`);
    if (moved.length > 0) await client.query(`UPDATE ${table} SET ${moved.join(', ')}`, [recordedAt]);
  }
  await client.query(`
    SELECT setval(pg_get_serial_sequence('audit', 'audit_id'), (SELECT max(audit_id) FROM audit)),
           setval(pg_get_serial_sequence('status_events', 'event_id'), (SELECT max(event_id) FROM status_events))`);
  await client.end();
  await migrate(url);
  return url;
}

it('every released version has a recording', async () => {
  const sections = (await readFile(new URL('CHANGELOG.md', ROOT), 'utf8')).matchAll(/^## (\d+\.\d+\.\d+)\b/gm);
  let tags = '';
  try {
    tags = execFileSync('git', ['tag', '--list', 'v*'], { cwd: fileURLToPath(ROOT), encoding: 'utf8', stdio: 'pipe' });
  } catch {
    // Not every copy of the files has the history.
  }
  const released = [
    ...Array.from(sections, ([, version]) => version),
    ...Array.from(tags.matchAll(/^v(\d+\.\d+\.\d+)$/gm), ([, version]) => version),
  ];
  expect(released).toContain('1.0.0');
  expect(recordings).toEqual(expect.arrayContaining(released));
});

describe.each(recordings)('with the data of version %s', (version) => {
  let recording: Recording;
  let known: Known;
  let system: System;
  let operator: Operator;
  /** With the right to change locations, which is newer. */
  let integrator: Operator;
  let platform: OrderingPlatform;
  let till: HttpServer;
  let senders: Record<'right' | 'other', Pos>;
  /** How often each order was posted to the POS. */
  const posted: string[] = [];

  beforeAll(async () => {
    recording = await read(version);
    ({ known } = recording);
    platform = await startOrderingPlatform({ token: 'platform-token' });
    for (const { service_order_id: id, contents } of recorded('order_contents'))
      platform.orders.set(String(id), contents);
    const changed = platform.orders.get('open') as object;
    platform.orders.set('open', { ...changed, notes: 'No onions, no salt' });
    till = await serveHttp(async (request, response) => {
      const { serviceOrderId } = JSON.parse((await readBody(request)).toString()) as { serviceOrderId: string };
      posted.push(serviceOrderId);
      // The POS id that a webhook had before.
      sendJson(response, 200, {
        providerOrderId: serviceOrderId === 'waiting' ? 'pos-parked' : `pos-${serviceOrderId}`,
      });
    });
    senders = { right: await startPos({ secret: known.secret }), other: await startPos({ secret: known.otherSecret }) };
    system = await startSystem({
      databaseUrl: await restore(recording),
      providers: [blind],
      env: {
        OPERATOR_TOKEN,
        SPILL_TOPIC: 'spill',
        ORDER_API_URL: platform.url,
        ORDER_MODULE: fileURLToPath(new URL('examples/order-with-cancels.ts', ROOT)),
        // Whenever this test runs, the webhooks are of the day of the recording.
        WEBHOOK_RETENTION_DAYS: '3650',
        PII_RETENTION_DAYS: '3650',
      },
    });
    operator = await askOperator(system.urls[0] ?? '', known.operatorToken);
    integrator = await askOperator(system.urls[0] ?? '');
  });
  afterAll(() =>
    Promise.all([system?.stop(), platform?.stop(), till?.stop(), senders?.right.stop(), senders?.other.stop()]),
  );

  const recorded = (table: string): Row[] => recording.rows.get(table) ?? [];
  const get = async (path: string): Promise<Row> => {
    const { status, body } = await operator.get(path);
    expect(status, path).toBe(200);
    return body;
  };
  const list = async (path: string, of: string): Promise<Row[]> => (await get(path))[of] as Row[];
  const send = async (locationId: string, report: StatusReport, sender = senders.right): Promise<unknown> => {
    const url = `${system.urls[0]}/webhook/standard/${locationId}?token=${known.tokens[locationId]}`;
    const { status, body } = await sender.sendStatus(url, report);
    return { status, outcome: (body as { outcome?: string }).outcome };
  };
  const change = async (locationId: string, settings: object): Promise<void> => {
    const { status } = await integrator.send('PATCH', `/locations/${locationId}`, { settings });
    expect(status).toBe(200);
  };
  const reaches = (id: string, state: string): Promise<unknown> =>
    until(async () => (await system.placement(id))?.['state'] === state);

  it('orders in each state are listed and shown', async () => {
    const placements = recorded('placements');
    expect(new Set(placements.map(({ state }) => state))).toEqual(
      new Set(['waiting', 'held', 'in_doubt', 'sent', 'failed', 'withdrawn']),
    );
    const orders = await list('/orders', 'orders');
    expect(new Set(orders.map(({ serviceOrderId }) => serviceOrderId))).toEqual(
      new Set(placements.map((row) => row['service_order_id'])),
    );
    for (const { service_order_id: id } of placements) {
      const order = await get(`/orders/${String(id)}`);
      const attempts = recorded('placement_attempts').filter((row) => row['service_order_id'] === id);
      expect((order['attempts'] as unknown[]).length, String(id)).toBeGreaterThanOrEqual(attempts.length);
    }
    expect(await system.placement('failed')).toMatchObject({ state: 'failed', cause: { code: 'pos_rejected_order' } });
  });

  it('webhooks with each outcome are listed, and shown with their bodies', async () => {
    const webhooks = await list('/webhooks', 'webhooks');
    const ids = webhooks.map(({ webhookId }) => webhookId);
    expect(ids).toEqual(expect.arrayContaining(recorded('webhooks').map(({ id }) => id)));
    for (const { id, outcome } of recorded('webhooks')) {
      expect(await get(`/webhooks/${String(id)}`)).toMatchObject({
        outcome,
        body: { text: expect.stringContaining('{') },
      });
    }
  });

  it('the operator token, session, grant and audit still work', async () => {
    const headers = { cookie: known.cookie, ...OWN_PAGE };
    expect((await sendAsIs(system.urls[0] ?? '', '/console/api/orders', { headers })).status).toBe(200);
    const other = { cookie: `${known.cookie}x`, ...OWN_PAGE };
    expect((await sendAsIs(system.urls[0] ?? '', '/console/api/orders', { headers: other })).status).toBe(401);
    expect(await list('/operators/tokens', 'tokens')).toMatchObject([{ name: 'recorded' }]);
    expect(await list('/operators/grants', 'grants')).toMatchObject([
      { email: 'anna@example.com', roles: ['viewer'], locations: ['club-1'] },
    ]);
    const actions = (await list('/audit', 'actions')).map(({ action }) => action);
    expect(actions).toEqual(expect.arrayContaining(recorded('audit').map(({ action }) => action)));
  });

  it('the webhook token and the encrypted settings of a location still work', async () => {
    const report = { serviceOrderId: 'completed', status: 'completed' };
    expect(await send('club-1', report)).toEqual({ status: 200, outcome: 'duplicate' });
    // The settings have the secret, and it counts.
    expect(await send('club-1', report, senders.other)).toEqual({ status: 200, outcome: 'dropped' });
    expect(await send('club-9', report)).toMatchObject({ status: 401 });
  });

  it('a message in the outbox is published, and a changed order is fetched again', async () => {
    const [message] = recorded('outbox');
    const sequence = message?.['sequence'];
    await until(() => system.live('open').some((live) => live.sequence === sequence && live.status === 'ready'));
    await until(async () => {
      const changes = await system.query(`SELECT changes FROM order_changes WHERE service_order_id = 'open'`);
      return changes.length === 2;
    });
  });

  it('a waiting order is placed once, and the event that waited for its POS id is applied', async () => {
    await change('club-2', { ordersUrl: `${till.url}/orders`, secret: known.secret });
    await reaches('waiting', 'sent');
    await until(async () => (await system.order('waiting'))?.['status'] === 'received');
    expect(posted.filter((id) => id === 'waiting')).toHaveLength(1);
  });

  it('an order without a location is placed when there is a location', async () => {
    const settings = { ordersUrl: `${till.url}/orders`, unsigned: true };
    await integrator.send('PUT', '/locations/club-without-settings', { integration: 'standard', settings });
    await reaches('held', 'sent');
  });

  it('an order in doubt is resolved', async () => {
    expect((await operator.post('/orders/in-doubt/resolve', { there: true })).status).toBe(200);
    await reaches('in-doubt', 'sent');
  });

  it('a dropped webhook is replayed with other settings', async () => {
    await change('club-4', { secret: known.otherSecret });
    const [dropped] = recorded('webhooks').filter(({ outcome }) => outcome === 'dropped');
    const { body } = await operator.post(`/webhooks/${String(dropped?.['id'])}/replay`);
    expect(body).toMatchObject({ outcome: 'applied' });
    expect(await system.order('by-phone')).toMatchObject({ status: 'received' });
    const { status } = await operator.post('/orders/by-phone/cancel/conclude', { cancelled: true });
    expect(status).toBe(200);
    expect(await system.order('by-phone')).toMatchObject({ status: 'cancelled' });
  });

  it('a webhook in the spill is applied', async () => {
    expect(await system.order('open')).toMatchObject({ status: 'ready' });
    const client = new PubSub({ projectId: PROJECT });
    for (const data of known.spilled) await client.topic('spill').publishMessage({ data: Buffer.from(data, 'base64') });
    await client.close();
    await until(async () => (await system.order('open'))?.['status'] === 'completed');
  });
});
