/** `expediter provider check`, as an operator runs it. */
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { putLocation } from '../../src/core/locations/put-location.ts';
import { parseSettingsKeys } from '../../src/core/locations/settings-key.ts';
import { registry } from '../../src/providers/index.ts';
import { startHubrise } from '../simulators/start-hubrise.ts';
import type { Simulator } from '../simulators/simulator.ts';
import { asService } from '../support/as-service.ts';
import { createDatabase } from '../support/create-database.ts';
import { runCli } from '../support/run-cli.ts';
import type { Ended } from '../support/run-program.ts';
import { ALLOW_PRIVATE_HOSTS, allowedHosts } from '../support/allowed-loopback.ts';

const SETTINGS_KEY = `test:${Buffer.alloc(32, 7).toString('base64')}`;
const keys = parseSettingsKeys(SETTINGS_KEY);
const started: Simulator[] = [];
let env: { DATABASE_URL: string; SETTINGS_KEY: string; ALLOW_PRIVATE_HOSTS: string };
let pool: pg.Pool;

beforeAll(async () => {
  env = { DATABASE_URL: asService(await createDatabase()), SETTINGS_KEY, ALLOW_PRIVATE_HOSTS };
  pool = new pg.Pool({ connectionString: env.DATABASE_URL, max: 1 });
});
afterEach(async () => {
  for (const pos of started.splice(0)) await pos.stop();
});
afterAll(() => pool?.end());

async function start(): Promise<Simulator> {
  const pos = await startHubrise();
  started.push(pos);
  return pos;
}

async function put(locationId: string, integration: string, settings: object): Promise<void> {
  await putLocation(
    pool,
    { registry, keys, publicUrl: undefined, allowedHosts },
    { locationId, integration, settings },
  );
}

function check(locationId: string, ...words: string[]): Promise<Ended> {
  return runCli(env, ['provider', 'check', locationId, ...words]);
}

it('says that settings reach their POS, where nothing comes of it', async () => {
  const pos = await start();
  await put('fine', 'hubrise', pos.settings);
  expect(await check('fine')).toEqual({ code: 0, out: 'ok       fine: reaches its POS\n', error: '' });
  expect(JSON.parse((await check('fine', '--json')).out)).toEqual({ locationId: 'fine', state: 'ok' });
  expect(pos.requests).toBe(0);
  expect(pos.refusals).toEqual([]);
});

it('exits 1 with what is wrong and what to do, and shows no secret', async () => {
  const pos = await start();
  await put('wrong', 'hubrise', { ...pos.settings, accessToken: 'another-token' });
  const ended = await check('wrong');
  expect(ended).toMatchObject({ code: 1, error: '' });
  expect(ended.out).toMatch(/^failed {2}wrong\nfound {3}HubRise refuses accessToken \(401\)/);
  expect(ended.out).toContain('expediter location put --location wrong');
  expect(ended.out).not.toContain('another-token');

  const json = await check('wrong', '--json');
  expect(json.code).toBe(1);
  expect(JSON.parse(json.out)).toMatchObject({ locationId: 'wrong', state: 'failed' });
});

it('leads nowhere that ALLOW_PRIVATE_HOSTS does not name, and says so', async () => {
  const pos = await start();
  await put('private', 'hubrise', pos.settings);
  // Whether or not its POS could be asked.
  await put('unasked', 'standard', { ordersUrl: 'http://127.0.0.1:9/orders', unsigned: true });
  for (const [locationId, setting] of Object.entries({ private: 'baseUrl', unasked: 'ordersUrl' })) {
    const ended = await runCli({ ...env, ALLOW_PRIVATE_HOSTS: '10.0.0.0/8' }, ['provider', 'check', locationId]);
    expect(ended).toMatchObject({ code: 1, error: '' });
    expect(ended.out).toContain(`${setting} is not allowed: this host in the settings has a loopback address`);
    expect(ended.out).toMatch(/to do .*ALLOW_PRIVATE_HOSTS/);
  }
});

it('is honest where it cannot ask', async () => {
  await put('plain', 'standard', { ordersUrl: 'http://127.0.0.1:9/orders', unsigned: true });
  expect(await check('plain')).toMatchObject({
    code: 0,
    out: expect.stringContaining('ok       plain: was not tried: standard has no call') as string,
  });
});
