/** `expediter certify`, as an operator runs it; what it asks of a POS is in test/process/certify. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { CanonicalOrder } from '../../src/core/domain/order.ts';
import { startBridge, type Bridge, type Habits } from '../process/certify/start-bridge.ts';
import { OPERATOR_TOKEN, askOperator } from '../../world/system/ask-operator.ts';
import { balanceLoad } from '../../world/network/balance-load.ts';
import { runCli } from '../support/run-cli.ts';
import type { Ended } from '../../world/processes/run-program.ts';
import { runRefused } from '../support/run-refused.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import type { HttpServer } from '../../world/network/serve-http.ts';
import { post, startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

let system: System;
/** In front of the processes, as PUBLIC_URL needs it. */
let balancer: HttpServer;
/** Of the processes; and of somebody elsewhere, who signed in. */
let env: Record<string, string>;
let elsewhere: Record<string, string>;
let folder: string;
const started: Bridge[] = [];

beforeAll(async () => {
  balancer = await balanceLoad(() => system?.urls ?? []);
  system = await startSystem({ processes: 2, env: { OPERATOR_TOKEN, PUBLIC_URL: balancer.url } });
  ({ env } = system);
  elsewhere = { EXPEDITER_URL: system.urls[0] ?? '', EXPEDITER_TOKEN: OPERATOR_TOKEN };
  folder = await mkdtemp(join(tmpdir(), 'expediter-certify-'));
});
afterEach(async () => {
  for (const bridge of started.splice(0)) await bridge.stop();
});
afterAll(async () => {
  await balancer?.stop();
  await system?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true });
});

type Opened = { orders: CanonicalOrder[]; press: Bridge['press'] };

/** A bridge, at whose till somebody presses statuses. */
async function open(locationId: string, habits: Habits = {}): Promise<Opened> {
  const orders: CanonicalOrder[] = [];
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const bridge = await startBridge(secret, {
    ...habits,
    names(order, ticket) {
      orders[0] ??= order;
      return { thirdPartyReference: order.serviceOrderId, id: ticket };
    },
  });
  started.push(bridge);
  await system.addLocation(locationId, { ordersUrl: bridge.ordersUrl, secret });
  bridge.webhookUrl = await system.webhookUrl(locationId);
  return { orders, press: bridge.press };
}

function certify(locationId: string, ...words: string[]): Promise<Ended> {
  return runCli(env, ['certify', '--location', locationId, ...words]);
}

it.each([
  { by: 'the database', locationId: 'fine', byWhom: () => env },
  { by: 'the API', locationId: 'fine-too', byWhom: () => elsewhere },
])('certify by $by exits 0 for a complete POS, and prints each step', async (about) => {
  const { locationId, byWhom } = about;
  const file = join(folder, 'order.json');
  const wanted = sampleOrder({ type: 'delivery' });
  await writeFile(file, JSON.stringify(wanted));
  const { orders, press } = await open(locationId);
  const ended = await runCli(
    byWhom(),
    `certify --location ${locationId} --order ${file} --without in_progress --wait 60s`.split(' '),
    '',
    // Somebody does what it says.
    (words) => {
      const [, status] = /^\.\.\. {6}(\w+):/.exec(words) ?? [];
      if (status !== undefined) press(status.toUpperCase());
    },
  );
  expect(ended, ended.error).toMatchObject({ code: 0 });
  expect(ended.error).toMatch(
    /^\.\.\. {6}en_route: send it on its way, unless that happens automatically \(up to 60 s\)$/m,
  );
  expect(ended.error).toMatch(/^ok {7}after a 500: answered 500, it came again, and was applied \d+ s later$/m);
  expect(ended.out).toMatch(/^15 ok; the test order was certify-[0-9a-f]{16}\n$/);
  expect(orders[0]).toMatchObject({
    items: wanted.items,
    money: wanted.money,
    fulfillment: wanted.fulfillment,
    member: { name: 'TEST, do not cook' },
    callOutCode: expect.stringMatching(/^\w{4}$/) as string,
  });
});

it('certify exits 1 after a failed step, with the request, what was expected and what to do', async () => {
  await open('wrong', { answer: (response) => void response.writeHead(404).end() });
  const ended = await certify('wrong');
  expect(ended.code).toBe(1);
  expect(ended.out).toMatch(
    /^failed {7}takes the order\nfound .* 404.*\nthe request {2}POST http.*answered 404.*\nexpected .*\nto do .*--orders-url.*docs\/connect-your-pos.md#orders\n\n1 failed, 2 ok; the test/,
  );
  const json = await certify('wrong', '--json');
  expect(json.code).toBe(1);
  expect(JSON.parse(json.out)).toMatchObject({
    ok: false,
    locationId: 'wrong',
    order: { locationId: 'wrong', items: expect.any(Array) as unknown },
    checks: [
      { check: 'settings', state: 'ok' },
      { check: 'wrong token', state: 'ok' },
      {
        check: 'takes the order',
        state: 'failed',
        request: expect.any(String) as string,
        expected: expect.any(String) as string,
        toDo: expect.any(String) as string,
      },
    ],
  });
});

it('certify refuses wrong options without sending an order', async () => {
  await system.addLocation('unused', { ordersUrl: 'http://127.0.0.1:9/' });
  const file = join(folder, 'wrong.json');
  await writeFile(file, '{"items": []}');
  const unused = ['certify', '--location', 'unused'];
  const statuses = 'received, in_progress, ready, en_route, completed, repeats';
  expect(await runRefused(2, env, [...unused, '--order', file])).toMatch(/^error: --order: items/);
  expect(await runRefused(2, env, [...unused, '--without', 'cancelled'])).toContain(statuses);
  expect(await runRefused(2, env, [...unused, '--wait', '5x'])).toContain('such as 60s or 5m');
  await runRefused(3, env, ['certify', '--location', 'nowhere']);
  const { PUBLIC_URL: _url, ...inside } = env;
  expect(await runRefused(2, inside, unused)).toContain('PUBLIC_URL is not set');
  expect(await system.query(`SELECT FROM placements WHERE location_id = 'unused'`)).toEqual([]);
});

describe('certify by the API', () => {
  const AUTHORIZATION = { authorization: `Bearer ${OPERATOR_TOKEN}` };
  type Run = { text: () => string; leave: () => void; ended: Promise<unknown> };
  /** Nobody is at the till. */
  async function begin(locationId: string, process = 0): Promise<Run> {
    await open(locationId);
    const leaving = new AbortController();
    const url = `${system.urls[process]}/v1/locations/${locationId}/certify`;
    const response = await fetch(url, { method: 'POST', headers: AUTHORIZATION, signal: leaving.signal });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    let text = '';
    const reading = async (): Promise<void> => {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
    };
    const ended = reading().catch(() => {});
    await until(() => text.includes('event: wants'));
    return { text: () => text, leave: () => leaving.abort(), ended };
  }
  const actionAt = async (locationId: string): Promise<{ outcome: string | null } | undefined> => {
    const operator = await askOperator(system.urls[0] ?? '');
    const { body } = await operator.get(`/audit?location=${locationId}`);
    return (body['actions'] as { action: string; outcome: string | null }[]).find(({ action }) => action === 'certify');
  };
  const endOf = async (locationId: string): Promise<unknown> => {
    const [row] = await system.query('SELECT ended_at FROM orders WHERE location_id = $1', [locationId]);
    return row?.['ended_at'];
  };

  it('ends the test order when the client leaves', async () => {
    const run = await begin('left');
    expect(await endOf('left')).toBeNull();
    run.leave();
    await until(async () => (await endOf('left')) !== null);
    const ended = await until(async () => {
      const action = await actionAt('left');
      return action?.outcome !== null && action;
    });
    expect(ended).toMatchObject({ outcome: 'failed', by: { name: 'OPERATOR_TOKEN' } });
    const tokens = await system.query(
      `SELECT revoked_at FROM webhook_tokens WHERE location_id = 'left' AND label = 'certify'`,
    );
    expect(tokens).toEqual([{ revoked_at: expect.any(Date) as Date }]);
  });

  it('is answered 409 while another certify runs in the process', async () => {
    const run = await begin('first');
    const operator = await askOperator(system.urls[0] ?? '');
    expect(await operator.post('/locations/first/certify')).toMatchObject({ status: 409 });
    run.leave();
    await until(async () => (await operator.post('/locations/nowhere/certify')).status === 404);
    await until(async () => (await endOf('first')) !== null);
  });

  it('shows no text of a webhook about another order', async () => {
    const secret = 'the member of another order';
    await open('curious');
    const ended = certify('curious', '--wait', '10s', '--json');
    await until(async () => (await system.query(`SELECT FROM orders WHERE location_id = 'curious'`)).length > 0);
    const { status } = await post(await system.webhookUrl('curious'), { about: secret, order: 'ticket-1' });
    expect(status).toBe(200);
    const { out } = await ended;
    expect(out).toContain('JSON with about, order');
    expect(out).not.toContain(secret);
  });

  it('ends with the problem 503 when its process stops', async () => {
    const run = await begin('drained', 1);
    await system.drain(1);
    await run.ended;
    expect(run.text()).toMatch(/event: failed\ndata: {.*"status":503,.*"detail":"This process is stopping/);
    expect(await endOf('drained')).not.toBeNull();
    expect(await actionAt('drained')).toMatchObject({ outcome: 'failed' });
  });
});
