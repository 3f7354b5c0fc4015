/** `expediter certify`, as an operator runs it; what it asks of a POS is in test/process/certify. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { CanonicalOrder } from '../../src/core/domain/order.ts';
import { startBridge, type Bridge, type Habits } from '../process/certify/start-bridge.ts';
import { runCli } from '../support/run-cli.ts';
import type { Ended } from '../support/run-program.ts';
import { sampleOrder } from '../support/sample-order.ts';
import { startSystem, type System } from '../support/start-system.ts';

/** Longer than certify takes to look. */
const STEP_MS = 700;

let system: System;
let env: Record<string, string>;
let folder: string;
const started: Bridge[] = [];

beforeAll(async () => {
  system = await startSystem();
  env = { ...system.env, PUBLIC_URL: system.urls[0] ?? '' };
  folder = await mkdtemp(join(tmpdir(), 'expediter-certify-'));
});
afterEach(async () => {
  for (const bridge of started.splice(0)) await bridge.stop();
});
afterAll(async () => {
  await system?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true });
});

/** A bridge whose kitchen cooks by itself what it is sent. */
async function open(locationId: string, life: readonly string[], habits: Habits = {}): Promise<CanonicalOrder[]> {
  const orders: CanonicalOrder[] = [];
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const cook = async (): Promise<void> => {
    for (const status of life) {
      await sleep(STEP_MS);
      bridge.press(status);
    }
  };
  const bridge = await startBridge(secret, {
    ...habits,
    names(order, ticket) {
      orders[0] ??= order;
      return { thirdPartyReference: order.serviceOrderId, id: ticket };
    },
    ticketOf(nth) {
      if (nth === 1) void cook();
      return 'ticket-1';
    },
  });
  started.push(bridge);
  await system.addLocation(locationId, { ordersUrl: bridge.ordersUrl, secret });
  bridge.webhookUrl = await system.webhookUrl(locationId);
  return orders;
}

function certify(locationId: string, ...words: string[]): Promise<Ended> {
  return runCli(env, ['certify', '--location', locationId, ...words]);
}

it('says that a POS does all that it has to, in words as it goes on, and exits 0', async () => {
  const file = join(folder, 'order.json');
  const wanted = sampleOrder({ type: 'delivery' });
  await writeFile(file, JSON.stringify(wanted));
  const orders = await open('fine', ['RECEIVED', 'READY', 'EN_ROUTE', 'COMPLETED']);
  const ended = await certify('fine', '--order', file, '--without', 'in_progress', '--wait', '20s');
  expect(ended).toMatchObject({ code: 0 });
  expect(ended.error).toMatch(
    /^\.\.\. {6}en_route: send it on its way, unless that happens automatically \(up to 20 s\)$/m,
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

it('exits 1 with the request, what was expected and what to do, in words and in JSON', async () => {
  await open('wrong', ['RECEIVED'], { answer: (response) => void response.writeHead(404).end() });
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

it('refuses what it cannot use, before anything is sent', async () => {
  await system.addLocation('unused', { ordersUrl: 'http://127.0.0.1:9/' });
  const file = join(folder, 'wrong.json');
  await writeFile(file, '{"items": []}');
  expect(await certify('unused', '--order', file)).toMatchObject({
    code: 2,
    error: expect.stringMatching(/^error: --order: items/) as string,
  });
  expect(await certify('unused', '--without', 'cancelled')).toMatchObject({
    code: 2,
    error: expect.stringContaining('received, in_progress, ready, en_route, completed, repeats') as string,
  });
  expect(await certify('unused', '--wait', '5x')).toMatchObject({
    code: 2,
    error: expect.stringContaining('such as 60s or 5m') as string,
  });
  expect(await certify('nowhere')).toMatchObject({ code: 3 });
  const { PUBLIC_URL: _url, ...inside } = env;
  expect(await runCli(inside, ['certify', '--location', 'unused'])).toMatchObject({
    code: 2,
    error: expect.stringContaining('PUBLIC_URL is unset') as string,
  });
  expect(await system.query(`SELECT FROM placements WHERE location_id = 'unused'`)).toEqual([]);
});
