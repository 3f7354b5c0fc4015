import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { migrate } from '../../src/database/migrate.ts';
import { PROBED, memoryOf } from '../support/memory-of.ts';
import { runMain, type MainProcess } from '../../world/processes/run-main.ts';
import { startPostgres, type Postgres } from '../../world/postgres/start-postgres.ts';
import { post, startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

let postgres: Postgres;
let system: System;
let main: MainProcess;
let webhook: string;

beforeAll(async () => {
  postgres = await startPostgres();
  await migrate(postgres.url);
  system = await startSystem({ databaseUrl: postgres.url, processes: 0, env: { PUSH_AUTH: 'off' } });
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  main = await runMain({ ...system.env, NODE_OPTIONS: PROBED });
  system.urls.push(main.url);
  webhook = await system.webhookUrl('club-1');
});
afterAll(async () => {
  main?.child.kill('SIGKILL');
  await system?.stop();
  await postgres?.stop();
});

const ignored = { eventType: 'menu.changed', filler: 'x'.repeat(20_000) };
const send = async (): Promise<number> => (await post(webhook, ignored)).status;
/** Sends for so many seconds, forty at a time, a few hundred a second. @returns the statuses of the answers */
async function load(seconds: number): Promise<number[]> {
  const answers: number[] = [];
  const end = performance.now() + seconds * 1_000;
  const sender = async (): Promise<void> => {
    while (performance.now() < end) {
      answers.push(await send());
      await sleep(100);
    }
  };
  await Promise.all(Array.from({ length: 40 }, sender));
  return answers;
}
async function heap(): Promise<number> {
  const { heapUsed, external } = await memoryOf(main);
  return heapUsed + external;
}
const body = async (path: string): Promise<[number, Record<string, unknown>]> => {
  const response = await fetch(`${main.url}${path}`);
  return [response.status, (await response.json()) as Record<string, unknown>];
};

it('without Postgres the process stays ready, answers webhooks 500, and recovers automatically', async () => {
  // A slow machine answers the first ones 500.
  expect(await load(1)).toContain(200);
  await postgres.kill();

  await load(2);
  const early = await heap();
  expect(await body('/healthz')).toEqual([200, { status: 'ok' }]);
  await until(async () => (await body('/readyz'))[1]['database'] === 'down');
  expect(await body('/readyz')).toEqual([200, { ready: true, database: 'down' }]);
  // Longer than a judged token is kept: from then on nobody can say whose webhook it is.
  expect(new Set(await load(6))).toEqual(new Set([500]));
  expect(((await heap()) - early) / 2 ** 20).toBeLessThan(10);
  const push = await post(`${main.url}/pubsub/push`, { message: { attributes: { orderId: 'o-1' }, messageId: '1' } });
  expect(push.status).toBe(503);

  await postgres.restart();
  await until(async () => (await send()) === 200);
  await sleep(100);
  await until(async () => (await load(1)).every((status) => status === 200));
  await until(async () => (await body('/readyz'))[1]['database'] === 'up');
  expect(main.child.exitCode).toBeNull();
});
