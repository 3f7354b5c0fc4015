import { PubSub } from '@google-cloud/pubsub';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { putLocation } from '../../src/core/locations/put-location.ts';
import { parseSettingsKeys } from '../../src/core/locations/settings-key.ts';
import { issueToken } from '../../src/core/locations/webhook-tokens.ts';
import { migrate } from '../../src/database/migrate.ts';
import { registry } from '../../src/providers/index.ts';
import { PROBED, memoryOf } from '../support/memory-of.ts';
import { runMain, type MainProcess } from '../support/run-main.ts';
import { startPostgres, type Postgres } from '../support/start-postgres.ts';
import { startPubsub, type Pubsub } from '../support/start-pubsub.ts';
import { post } from '../support/start-system.ts';
import { until } from '../support/until.ts';
import { allowedHosts } from '../support/allowed-loopback.ts';

const SETTINGS_KEY = `test:${Buffer.alloc(32, 7).toString('base64')}`;

let postgres: Postgres;
let pubsub: Pubsub;
let main: MainProcess;
let webhook: string;

beforeAll(async () => {
  [postgres, pubsub] = await Promise.all([startPostgres(), startPubsub()]);
  await migrate(postgres.url);
  const client = new PubSub({ projectId: 'outage', apiEndpoint: pubsub.host, emulatorMode: true });
  await client.createTopic('order-status');
  await client.close();
  const pool = new pg.Pool({ connectionString: postgres.url, max: 1 });
  const settings = { ordersUrl: 'http://127.0.0.1:9/orders', unsigned: true };
  const keys = parseSettingsKeys(SETTINGS_KEY);
  await putLocation(
    pool,
    { registry, keys, publicUrl: undefined, allowedHosts },
    { locationId: 'club-1', integration: 'standard', settings },
  );
  const { token } = await issueToken(pool, { locationId: 'club-1' });
  await pool.end();
  main = await runMain({
    DATABASE_URL: postgres.url,
    HOST: '127.0.0.1',
    ORDER_API_URL: 'http://127.0.0.1:9/graphql',
    GOOGLE_CLOUD_PROJECT: 'outage',
    PUBSUB_EMULATOR_HOST: pubsub.host,
    PUSH_AUTH: 'off',
    SETTINGS_KEY,
    DRAIN_DELAY_MS: '0',
    NODE_OPTIONS: PROBED,
  });
  webhook = `${main.url}/webhook/standard/club-1?token=${token}`;
});
afterAll(async () => {
  main?.child.kill('SIGKILL');
  await Promise.all([postgres?.stop(), pubsub?.stop()]);
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

it('with Postgres gone the process stays in the load balancer, answers 500, holds on to nothing, and goes on by itself', async () => {
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
