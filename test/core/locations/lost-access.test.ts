import { createHmac } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseSettingsKeys, unseal } from '../../../src/core/locations/settings-key.ts';
import { sampleBacklog } from '../../../src/core/orders/sample-backlog.ts';
import { startHubrise, type HubriseSimulator } from '../../../world/pos/hubrise/start-hubrise.ts';
import { MERCHANT } from '../../../world/pos/square/square-oauth.ts';
import { startSquare, type SquareSimulator } from '../../../world/pos/square/start-square.ts';
import {
  OPERATOR_TOKEN,
  askOperator,
  sendAsIs,
  type Operator,
  type OperatorAnswer,
} from '../../../world/system/ask-operator.ts';
import { SHARED_ENV } from '../../../world/system/fixtures.ts';
import { runCli } from '../../support/run-cli.ts';
import { startSystem, type System } from '../../../world/system/start-system.ts';

const PUBLIC_URL = 'https://expediter.test';
let system: System;
let operator: Operator;
let square: SquareSimulator;
let hubrise: HubriseSimulator;
let locationId: string;
let nth = 0;

beforeAll(async () => {
  system = await startSystem({ env: { OPERATOR_TOKEN, PUBLIC_URL }, stepped: ['placements'] });
  operator = await askOperator(system.urls[0] ?? '');
});
afterAll(() => system?.stop());
beforeEach(async () => {
  nth += 1;
  locationId = `seller-${nth}`;
  [square, hubrise] = await Promise.all([startSquare({ byOauth: true }), startHubrise()]);
  await system.addLocation(locationId, { ...square.settings, merchantId: MERCHANT }, 'square');
});
afterEach(async () => {
  await system.query('UPDATE locations SET reconnect_needed_at = NULL');
  await Promise.all([square.stop(), hubrise.stop()]);
});

const shown = async (id = locationId): Promise<Record<string, unknown>> =>
  (await operator.get(`/locations/${id}`)).body;
const settings = async (id = locationId): Promise<unknown> => {
  const [row] = await system.query('SELECT settings FROM locations WHERE location_id = $1', [id]);
  return unseal(parseSettingsKeys(SHARED_ENV.SETTINGS_KEY), String(row?.['settings']), `locations/${id}`);
};
const patch = (change: object): Promise<OperatorAnswer> =>
  sendAsIs(system.urls[0] ?? '', `/v1/locations/${locationId}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ settings: change }),
  });
/** Tries what is due. */
const tried = async (id: string): Promise<Record<string, unknown> | undefined> => {
  await system.round('placements');
  return system.placement(id);
};
const connectionLeft = async (): Promise<number | undefined> =>
  (await sampleBacklog(system.pool, { PLACEMENT_DEADLINE_S: 1_800 })).lasts['square'];

/** Square's event, signed for the location's webhook. */
async function revoked(about: { merchantId?: string; at?: Date } = {}): Promise<OperatorAnswer> {
  const { merchantId: merchant_id = MERCHANT, at = new Date() } = about;
  const issued = await operator.post(`/locations/${locationId}/tokens`);
  const url = new URL(String(issued.body['url']));
  const body = JSON.stringify({
    merchant_id,
    type: 'oauth.authorization.revoked',
    event_id: 'e1d6ae37-5aa9-45a5-b525-b12caf819fdb',
    created_at: at.toISOString(),
    data: {
      type: 'revocation',
      id: '415641cf-eba2-4dfa-88cc-c4be1301fdc6',
      object: { revocation: { revoked_at: at.toISOString(), revoker_type: 'MERCHANT' } },
    },
  });
  const signature = createHmac('sha256', String(square.settings['signatureKey'])).update(url.href + body);
  return sendAsIs(system.urls[0] ?? '', url.pathname + url.search, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-square-hmacsha256-signature': signature.digest('base64') },
    body,
  });
}

describe('a location whose restaurant withdrew our access', () => {
  it('shows "reconnect needed", alerts, and holds its orders until the reconnect', async () => {
    expect(await shown()).toMatchObject({ reconnectNeededAt: null });
    expect(await revoked()).toMatchObject({ status: 200, body: { outcome: 'applied' } });
    expect(await shown()).toMatchObject({ reconnectNeededAt: expect.any(String) as string });
    // The alert ExpediterConnectionEnds fires below seven days.
    expect(await connectionLeft()).toBeLessThanOrEqual(0);

    const { serviceOrderId } = await system.placeOrder({ locationId });
    expect(await tried(serviceOrderId)).toMatchObject({ state: 'held', cause: { code: 'reconnect_needed' } });
    expect(square.requests).toBe(0);

    // Other settings are no access.
    await patch({ prepMinutes: { pickup: 20 } });
    expect(await shown()).toMatchObject({ reconnectNeededAt: expect.any(String) as string });
    await system.query(`UPDATE locations SET grant_sha256 = '' WHERE location_id = $1`, [locationId]);
    await patch({ prepMinutes: { pickup: 25 } });
    expect(await shown()).toMatchObject({ reconnectNeededAt: null });
    expect(await tried(serviceOrderId)).toMatchObject({ state: 'sent' });
  });

  it('does not alert while an operator has paused the location', async () => {
    await operator.post(`/locations/${locationId}/pause`);
    await revoked();
    expect((await connectionLeft()) ?? Infinity).toBeGreaterThan(0);
  });

  it('is not affected if Square names another seller', async () => {
    expect(await revoked({ merchantId: 'ANOTHER' })).toMatchObject({ status: 200, body: { outcome: 'ignored' } });
    expect(await shown()).toMatchObject({ reconnectNeededAt: null });
  });

  it("is not affected if the event is older than the location's grant", async () => {
    await system.query('UPDATE locations SET access_granted_at = now() WHERE location_id = $1', [locationId]);
    const at = new Date(Date.now() - 60_000);
    expect(await revoked({ at })).toMatchObject({ status: 200, body: { outcome: 'stale' } });
    expect(await shown()).toMatchObject({ reconnectNeededAt: null });
  });
});

describe('a location that an operator disconnects', () => {
  const disconnect = (id = locationId): Promise<OperatorAnswer> => operator.post(`/locations/${id}/disconnect`);

  it('loses its access at Square, its token in the settings, and its open connect links', async () => {
    const { url } = (await operator.post(`/locations/${locationId}/connect-links`)).body;
    expect(await disconnect()).toMatchObject({ status: 200, body: { locationId, revoked: true } });
    expect(square.oauth.isWithdrawn).toBe(true);
    expect(await settings()).not.toHaveProperty('refreshToken');
    expect(await settings()).toHaveProperty('clientId');
    expect(await shown()).toMatchObject({ reconnectNeededAt: expect.any(String) as string });
    const page = await sendAsIs(system.urls[0] ?? '', new URL(String(url)).pathname);
    expect(page.status).toBe(404);
    const { serviceOrderId } = await system.placeOrder({ locationId });
    expect(await tried(serviceOrderId)).toMatchObject({ state: 'held', cause: { code: 'reconnect_needed' } });
    expect(await disconnect()).toMatchObject({ status: 200, body: { revoked: false } });
  });

  it('can get from the command line a link to connect again', async () => {
    const ended = await runCli(system.env, ['provider', 'disconnect', locationId]);
    expect(ended.out).toContain(`${locationId} is disconnected, and its access is revoked at the vendor`);
    const { out } = await runCli(system.env, ['provider', 'connect-link', locationId]);
    expect(out).toMatch(/https:\/\/expediter\.test\/connect\/exc_\S+/);
  });

  it('has its access revoked by its token if the seller is unknown', async () => {
    await patch({ merchantId: null });
    expect(await disconnect()).toMatchObject({ body: { revoked: true } });
    expect(square.oauth.isWithdrawn).toBe(true);
  });

  it('has its access revoked for the seller who granted it, whatever the settings say', async () => {
    await patch({ merchantId: 'ANOTHER' });
    expect(await disconnect()).toMatchObject({ body: { revoked: true } });
    expect(square.oauth.isWithdrawn).toBe(true);
  });

  it('loses its access at HubRise', async () => {
    await system.addLocation('hub', { ...hubrise.settings, clientId: hubrise.oauth.clientId }, 'hubrise');
    expect(await disconnect('hub')).toMatchObject({ status: 200, body: { revoked: true } });
    expect(hubrise.oauth.isRevoked()).toBe(true);
    expect(await settings('hub')).not.toHaveProperty('accessToken');
    expect(hubrise.refusals).toEqual([]);
  });

  it('does not end the access at the vendor if another location shares this access', async () => {
    // The same URL in another spelling.
    const baseUrl = String(square.settings['baseUrl']).replace('http://127.0.0.1', 'HTTP://127.1');
    await system.addLocation('shares', { ...square.settings, baseUrl, merchantId: MERCHANT }, 'square');
    expect(await disconnect()).toMatchObject({ status: 200, body: { revoked: false } });
    expect(square.oauth.isWithdrawn).toBe(false);
    expect(await settings()).not.toHaveProperty('refreshToken');
    expect(await settings('shares')).toHaveProperty('refreshToken');
    await system.query(`DELETE FROM locations WHERE location_id = 'shares'`);
  });

  it('keeps its access, and the answer is 409, if the vendor refuses or is away', async () => {
    for (const status of [400, 503]) {
      square.fail = (route) => (route === 'POST /oauth2/revoke' ? { status } : undefined);
      const refused = await disconnect();
      expect(refused.status).toBe(409);
      expect(refused.body['detail']).toMatch(/^Nothing was changed: /);
    }
    expect(await settings()).toHaveProperty('refreshToken');
    expect(await shown()).toMatchObject({ reconnectNeededAt: null });
  });

  it('is refused with 409 if its vendor has no access to revoke', async () => {
    await system.addLocation('own', { ordersUrl: 'http://127.0.0.1:9/orders' });
    expect(await disconnect('own')).toMatchObject({ status: 409 });
  });
});
