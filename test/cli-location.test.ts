import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { OursToFix } from '../src/core/errors.ts';
import { credentialsOf } from '../src/core/credentials-of.ts';
import { keepCredentials } from '../src/core/keep-credentials.ts';
import type { PosContext, Provider, Registry } from '../src/core/provider.ts';
import { parseSettingsKeys } from '../src/core/settings-key.ts';
import { removeLocation } from '../src/core/remove-location.ts';
import { settingsOpener } from '../src/core/locations.ts';
import { registry as ownProviders } from '../src/providers/index.ts';
import { runCli } from './support/run-cli.ts';
import { runJson } from './support/run-json.ts';
import { post, startSystem, statusWebhook, type System } from './support/start-system.ts';
import { until } from './support/until.ts';

/** Its tokens expire, and stem from one account, which several locations may share. */
const granting: Provider<{ account: string }> = {
  integration: 'granting',
  settings: z.object({ account: z.string() }),
  deduplicates: true,
  async createOrder(order, context) {
    await token(context);
    return { providerOrderId: `pos-${order.serviceOrderId}` };
  },
  async check(context) {
    await token(context);
  },
  translateWebhook: () => [],
};
const token = ({ settings, credentials }: PosContext<{ account: string }>): Promise<string> =>
  credentials.accessToken({
    seed: settings,
    obtain: () => Promise.resolve({ accessToken: 'a', refreshToken: 'r', expiresIn: 3600 }),
  });

let system: System;
let env: Record<string, string>;

beforeAll(async () => {
  system = await startSystem({ providers: [granting] });
  env = system.env;
});
afterAll(() => system?.stop());

const put = (locationId: string): Promise<unknown> =>
  runJson(
    env,
    ['location', 'put', '--location', locationId, '--integration', 'standard', '--settings', '-'],
    '{"ordersUrl":"http://127.0.0.1:9/"}',
  );

describe('expediter location remove', () => {
  it('refuses one that takes orders, and says what to do first', async () => {
    await put('open');
    const { code, error } = await runCli(env, ['location', 'remove', 'open']);
    expect({ code, error }).toEqual({
      code: 1,
      error: 'error: open cannot be removed: it takes orders. First: expediter location pause open\n',
    });
    expect(await runJson(env, ['location', 'show', 'open'])).toMatchObject({ locationId: 'open' });
  });

  it('refuses one whose orders have not ended, and names them with where they are', async () => {
    await put('busy');
    await runJson(env, ['location', 'pause', 'busy']);
    const { serviceOrderId: held } = await system.placeOrder({ locationId: 'busy' });
    await until(async () => (await system.placement(held))?.['state'] === 'held');
    for (let n = 0; n < 6; n++) await system.seedOrder({ serviceOrderId: `busy-${n}`, locationId: 'busy' });
    const { code, error } = await runCli(env, ['location', 'remove', 'busy']);
    expect(code).toBe(1);
    expect(error).toContain(`orders that have not ended: ${held} (held), busy-0 (sent), `);
    expect(error).toContain(' and 2 more. ');
  });

  it('removes a paused one: within five seconds its webhooks are 401, and its orders can still be read', async () => {
    await put('gone');
    await system.seedOrder({ serviceOrderId: 'past', locationId: 'gone' });
    const url = await system.webhookUrl('gone');
    const { body } = await post(url, statusWebhook({ serviceOrderId: 'past', status: 'COMPLETED' }));
    expect(body).toMatchObject({ outcome: 'applied' });
    await runJson(env, ['location', 'pause', 'gone']);
    await system.query(
      `INSERT INTO location_heard (location_id, integration, heard_at) VALUES ('gone', 'standard', now())
       ON CONFLICT DO NOTHING`,
    );
    expect(await runJson(env, ['location', 'remove', 'gone'])).toEqual({
      locationId: 'gone',
      removed: true,
      tokens: 1,
      grants: 0,
    });
    const removedAt = Date.now();
    await until(
      async () => (await post(url, statusWebhook({ serviceOrderId: 'past', status: 'READY' }))).status === 401,
    );
    expect(Date.now() - removedAt).toBeLessThan(5_500);

    expect(await system.query(`SELECT FROM location_heard WHERE location_id = 'gone'`)).toEqual([]);
    expect(await runCli(env, ['location', 'show', 'gone'])).toMatchObject({ code: 3 });
    expect(await runCli(env, ['location', 'remove', 'gone'])).toMatchObject({ code: 3 });
    expect(await runJson(env, ['order', 'show', 'past'])).toMatchObject({ order: { status: 'completed' } });
    expect(await runJson(env, ['delivery', 'show', String(body['deliveryId'])])).toMatchObject({ outcome: 'applied' });

    await put('gone');
    expect(await runJson(env, ['location', 'show', 'gone'])).toMatchObject({ paused: false, validTokens: 0 });
  });

  it('forgets what the POS granted with the last location that uses it', async () => {
    const keys = parseSettingsKeys(env['SETTINGS_KEY'] ?? '');
    const registry: Registry = new Map([['granting', granting as Provider]]);
    const open = settingsOpener({ registry, keys, publicUrl: undefined });
    const settings = { account: randomUUID() };
    for (const id of ['twin-1', 'twin-2']) {
      await system.addLocation(id, settings, 'granting');
      await system.query('UPDATE locations SET paused_at = now() WHERE location_id = $1', [id]);
    }
    await granting.check?.({
      settings,
      now: new Date(),
      signal: AbortSignal.timeout(5_000),
      credentials: keepCredentials(system.pool, keys)('granting'),
    });
    const grants = (): Promise<unknown[]> => system.query(`SELECT FROM credentials WHERE integration = 'granting'`);
    expect(await grants()).toHaveLength(1);

    expect(await removeLocation({ pool: system.pool, open }, 'twin-1')).toEqual({ tokens: 0, grants: 0 });
    expect(await grants()).toHaveLength(1);
    expect(await removeLocation({ pool: system.pool, open }, 'twin-2')).toEqual({ tokens: 0, grants: 1 });
    expect(await grants()).toEqual([]);
  });

  it('removes one whose settings nobody can open any more', async () => {
    await put('sealed');
    await runJson(env, ['location', 'pause', 'sealed']);
    const other = `other:${Buffer.alloc(32, 9).toString('base64')}`;
    expect(await runJson({ ...env, SETTINGS_KEY: other }, ['location', 'remove', 'sealed'])).toMatchObject({
      removed: true,
    });
  });

  it('learns which grant a location has without a call to anybody', async () => {
    const asked: unknown[] = [];
    const careless: Provider = {
      ...(granting as Provider),
      async check({ signal, credentials }) {
        await fetch('http://127.0.0.1:9/', { signal }).catch((error: Error) => asked.push(error.name));
        await credentials.accessToken({ seed: { a: 'b' }, obtain: () => Promise.reject(new OursToFix('never asked')) });
      },
    };
    expect(await credentialsOf(careless, {})).toMatch(/^[0-9a-f]{64}$/);
    expect(asked).toEqual(['AbortError']);
    expect(await credentialsOf(ownProviders.get('standard') as Provider, {})).toBeUndefined();
  });
});

describe('expediter token list', () => {
  it('shows until when a token is valid, and when a webhook came with it last', async () => {
    await put('tokens');
    const url = await system.webhookUrl('tokens', { expiresAt: new Date(Date.now() + 86_400_000) });
    await system.webhookUrl('tokens');
    await post(url, statusWebhook({ serviceOrderId: 'nobody', status: 'READY' }));
    type Row = { expiresAt: string | null; lastUsedAt: string | null; state: string };
    const rows = await until(async () => {
      const listed = await runJson<Row[]>(env, ['token', 'list', '--location', 'tokens']);
      return listed.some((row) => row.lastUsedAt !== null) && listed;
    }, 25_000);
    expect(rows).toMatchObject([
      { state: 'valid', expiresAt: expect.any(String), lastUsedAt: expect.any(String) },
      { state: 'valid', expiresAt: null, lastUsedAt: null },
    ]);
    const { out } = await runCli(env, ['token', 'list', '--location', 'tokens']);
    expect(out).toMatch(/^token .* state .* expires .* last used$/m);
  });
});
