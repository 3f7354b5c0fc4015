/** `expediter provider check`, as an operator runs it. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { startHubrise } from '../../world/pos/hubrise/start-hubrise.ts';
import type { Simulator } from '../../world/pos/simulator.ts';
import { startStage, type Stage } from '../support/operator-stage.ts';
import { runCli } from '../support/run-cli.ts';
import type { Ended } from '../../world/processes/run-program.ts';

const started: Simulator[] = [];
let stage: Stage;

beforeAll(async () => {
  stage = await startStage();
});
afterEach(async () => {
  for (const pos of started.splice(0)) await pos.stop();
});
afterAll(() => stage?.stop());

async function start(): Promise<Simulator> {
  const pos = await startHubrise();
  started.push(pos);
  return pos;
}

function check(locationId: string, ...words: string[]): Promise<Ended> {
  return runCli(stage.env, ['provider', 'check', locationId, ...words]);
}

it('provider check exits 0 for right settings, without creating an order', async () => {
  const pos = await start();
  await stage.addLocation('fine', pos.settings, 'hubrise');
  expect(await check('fine')).toEqual({ code: 0, out: 'ok       fine: reaches its POS\n', error: '' });
  expect(JSON.parse((await check('fine', '--json')).out)).toEqual({ locationId: 'fine', state: 'ok' });
  expect(pos.requests).toBe(0);
  expect(pos.refusals).toEqual([]);
});

it('provider check exits 1 for wrong settings, with what to do and without a secret', async () => {
  const pos = await start();
  await stage.addLocation('wrong', { ...pos.settings, accessToken: 'another-token' }, 'hubrise');
  const ended = await check('wrong');
  expect(ended).toMatchObject({ code: 1, error: '' });
  expect(ended.out).toMatch(/^failed {2}wrong\nfound {3}HubRise refuses accessToken \(401\)/);
  expect(ended.out).toContain('expediter location change --settings - wrong');
  expect(ended.out).not.toContain('another-token');

  const json = await check('wrong', '--json');
  expect(json.code).toBe(1);
  expect(JSON.parse(json.out)).toMatchObject({ locationId: 'wrong', state: 'failed' });
});

it('provider check exits 1 for a private host that is not in ALLOW_PRIVATE_HOSTS', async () => {
  const pos = await start();
  await stage.addLocation('private', pos.settings, 'hubrise');
  // Whether or not its POS could be asked.
  await stage.addLocation('unasked', { ordersUrl: 'http://127.0.0.1:9/orders' });
  for (const [locationId, setting] of Object.entries({ private: 'baseUrl', unasked: 'ordersUrl' })) {
    const ended = await runCli({ ...stage.env, ALLOW_PRIVATE_HOSTS: '10.0.0.0/8' }, ['provider', 'check', locationId]);
    expect(ended).toMatchObject({ code: 1, error: '' });
    expect(ended.out).toContain(`${setting} is not allowed: this host in the settings has a loopback address`);
    expect(ended.out).toMatch(/to do .*ALLOW_PRIVATE_HOSTS/);
  }
});

it('provider check says that nothing was tried if the POS has no call for a check', async () => {
  await stage.addLocation('plain', { ordersUrl: 'http://127.0.0.1:9/orders' });
  const { code, out } = await check('plain');
  expect(code).toBe(0);
  expect(out).toContain('ok       plain: was not tried: this POS has no call');
});
