import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { startHubrise } from '../../world/pos/hubrise/start-hubrise.ts';
import { startSquare } from '../../world/pos/square/start-square.ts';
import type { Simulator } from '../../world/pos/simulator.ts';
import { balanceLoad } from '../../world/network/balance-load.ts';
import { runCli } from '../support/run-cli.ts';
import type { Ended } from '../../world/processes/run-program.ts';
import { runRefused } from '../support/run-refused.ts';
import type { HttpServer } from '../../world/network/serve-http.ts';
import { startSystem, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';

let balancer: HttpServer;
let system: System;
let instances: string[] = [];
const started: Simulator[] = [];

beforeAll(async () => {
  balancer = await balanceLoad(() => instances);
  system = await startSystem({ env: { PUBLIC_URL: balancer.url, LOG_LEVEL: 'warn' } });
  instances = system.urls;
  await until(async () => (await fetch(`${balancer.url}/readyz`)).ok);
});
afterEach(async () => {
  for (const pos of started.splice(0)) await pos.stop();
});
afterAll(async () => {
  await system?.stop();
  await balancer?.stop();
});

/** Connects a location, which has to succeed, and prints JSON. */
async function connect(locationId: string): Promise<Ended> {
  const ended = await runCli(system.env, ['provider', 'connect', locationId, '--json']);
  expect(ended).toMatchObject({ code: 0, error: '' });
  return ended;
}

type Shown = { locationId: string; tokenId: string; done: string[]; todo: string[] };
const shown = ({ out }: Ended): Shown => JSON.parse(out) as Shown;
const tokensOf = (locationId: string): Promise<Record<string, unknown>[]> =>
  system.query('SELECT token_id, label, revoked_at FROM webhook_tokens WHERE location_id = $1', [locationId]);

it('provider connect registers the webhook at a POS that has an API for webhooks, and does not print the token', async () => {
  const pos = await startHubrise();
  started.push(pos);
  await system.addLocation('hub', pos.settings, 'hubrise');
  const ended = await connect('hub');
  expect(shown(ended)).toMatchObject({ locationId: 'hub', todo: [] });
  expect(await tokensOf('hub')).toEqual([
    { token_id: shown(ended).tokenId, label: 'provider connect', revoked_at: null },
  ]);

  const url = (pos as Simulator & { callback: { url: string } }).callback.url;
  const token = new URL(url).searchParams.get('token') ?? expect.unreachable('no token');
  expect(ended.out).not.toContain(token);
  const order = await system.placeOrder({ locationId: 'hub' });
  const ticket = await until(() => pos.tickets[0]);
  expect(await pos.report(url, ticket, 'accepted')).toMatchObject({ status: 200, body: { outcome: 'applied' } });
  await until(() => system.live(order.serviceOrderId).some((message) => message.memberState === 'confirmed'));
});

it("provider connect stores the POS's signature key, so that a replay of dropped webhooks succeeds", async () => {
  const pos = await startSquare();
  started.push(pos);
  const { signatureKey: _none, notificationUrl: _neither, ...settings } = pos.settings;
  await system.addLocation('square', settings, 'square');
  const early = await system.webhookUrl('square');
  await system.placeOrder({ locationId: 'square' });
  const ticket = await until(() => pos.tickets[0]);
  expect((await pos.report(early, ticket, 'PROPOSED')).body).toMatchObject({ outcome: 'dropped' });

  await connect('square');
  const [subscription] = (pos as Simulator & { subscriptions: readonly { notification_url: string }[] }).subscriptions;
  const url = subscription?.notification_url ?? expect.unreachable('not subscribed');
  // Another process may know the old settings for as long as it keeps the token's judgement.
  const report = () => pos.report(url, ticket, 'RESERVED');
  await until(async () => ((await report()).body as { outcome?: string }).outcome !== 'dropped');
  expect(await report()).toMatchObject({ status: 200, body: { outcome: 'duplicate' } });
});

it("provider connect gets an owner's token for a code that is copied from the browser", async () => {
  const pos = await startSquare({ byOauth: true });
  started.push(pos);
  const { refreshToken, ...settings } = pos.settings;
  await system.addLocation('seller', settings, 'square');
  const asked = await connect('seller');
  expect(shown(asked).todo[0]).toContain(`${pos.url}/oauth2/authorize?client_id=`);
  expect(await tokensOf('seller')).toMatchObject([{ revoked_at: expect.any(Date) as Date }]);

  await system.addLocation('seller', { ...settings, authorizationCode: pos.oauth.authorise() }, 'square');
  const ended = await connect('seller');
  expect(shown(ended).done[0]).toContain('Square granted a token for authorizationCode');
  for (const secret of [refreshToken, settings['clientSecret']]) expect(asked.out + ended.out).not.toContain(secret);

  await system.placeOrder({ locationId: 'seller' });
  await until(() => pos.tickets[0]);
  const { out } = await runCli(system.env, ['location', 'show', 'seller']);
  expect(out).toMatch(/^connection renewed {2,}\d{4}-.*Z$/m);
  expect(out).toMatch(/^connection lasts {2,}until \d{4}-.*Z, 29 days left$/m);
  expect(out).toMatch(/^refreshToken +secret, fingerprint/m);
  expect(out).not.toContain('authorizationCode');
});

it("provider connect prints the webhook's URL if the POS has no API for webhooks", async () => {
  await system.addLocation('plain', { ordersUrl: 'http://127.0.0.1:9/orders' });
  const { todo } = shown(await connect('plain'));
  expect(todo).toEqual([
    expect.stringMatching(new RegExp(`${balancer.url}/webhook/standard/plain\\?token=exw_[\\w-]{49}$`)),
  ]);
});

it('provider connect leaves no valid webhook token if the POS refuses the webhook', async () => {
  const pos = await startHubrise();
  started.push(pos);
  await system.addLocation('refused', { ...pos.settings, accessToken: 'another-token' }, 'hubrise');
  const error = await runRefused(1, system.env, ['provider', 'connect', 'refused']);
  expect(error).toMatch(/the POS answered 401/);
  expect(error).not.toContain('another-token');
  expect(await tokensOf('refused')).toEqual([expect.objectContaining({ revoked_at: expect.any(Date) as Date })]);
});

it.each([
  ['no such location', 'nowhere', {}, 3, 'nowhere: No location has this id.'],
  ['no PUBLIC_URL', 'plain', { PUBLIC_URL: '' }, 1, 'PUBLIC_URL is not set'],
])('provider connect refuses %s with an explanation', async (_name, locationId, env, code, words) => {
  const args = ['provider', 'connect', locationId];
  expect(await runRefused(code, { ...system.env, ...env }, args)).toContain(words);
});

it('settings of a POS that signs the URL are refused while PUBLIC_URL is unset', async () => {
  const pos = await startSquare();
  started.push(pos);
  const { notificationUrl: _none, ...settings } = pos.settings;
  const args = ['location', 'put', '--location', 'unsigned', '--integration', 'square', '--settings', '-'];
  const input = JSON.stringify(settings);
  expect(await runRefused(2, { ...system.env, PUBLIC_URL: '' }, args, input)).toContain('PUBLIC_URL is unset');
  expect(await runCli(system.env, args, input)).toMatchObject({ code: 0 });
});
