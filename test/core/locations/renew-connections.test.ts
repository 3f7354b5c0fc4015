import { expect, it } from 'vitest';
import { z } from 'zod';
import { NeedsOperator } from '../../../src/core/domain/errors.ts';
import { readGrant, renewConnections } from '../../../src/core/locations/renew-connections.ts';
import { credentialStore } from '../../../src/core/locations/credential-store.ts';
import { settingsDecrypter } from '../../../src/core/locations/locations.ts';
import { pauseLocation } from '../../../src/core/kitchens/pause-location.ts';
import { putLocation } from '../../../src/core/locations/put-location.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { KEYS, locationRules, plainProvider } from '../../support/location-rules.ts';
import { testPool } from '../../support/test-pool.ts';

const Settings = z.object({ refreshToken: z.string() });
const spent: string[] = [];

const rotating: Provider<z.infer<typeof Settings>> = {
  integration: 'rotating',
  settings: Settings,
  deduplicates: true,
  createOrder: async () => ({}),
  translateWebhook: () => [],
  grantSeed: (settings) => settings,
  renewConnection: ({ settings, credentials }) =>
    credentials.accessToken({
      seed: settings,
      async obtain(refreshToken = settings.refreshToken) {
        if (refreshToken === 'lost')
          throw new NeedsOperator('reconnect needed', { cause: { code: 'reconnect_needed' } });
        spent.push(refreshToken);
        return { accessToken: 'a', expiresIn: 0, refreshToken: `${refreshToken}+`, lastsS: 14 * 86_400 };
      },
    }),
};
const rules = locationRules(rotating, plainProvider('lasting'));
const pool = testPool({ max: 4 });

it('every refresh token is renewed before it expires, and each location that needs a person is logged', async () => {
  const locations = { broken: 'lost', fine: 'first', paused: 'other' };
  for (const [locationId, refreshToken] of Object.entries(locations)) {
    await putLocation(pool, rules, { locationId, integration: 'rotating', settings: { refreshToken } });
  }
  await putLocation(pool, rules, { locationId: 'quiet', integration: 'lasting', settings: {} });
  await pool.query(`INSERT INTO locations (location_id, integration, settings) VALUES ('unreadable', 'rotating', 'x')`);
  await pauseLocation(pool, 'paused');

  const logged: Record<string, unknown>[] = [];
  const deps = {
    pool,
    decryptSettings: settingsDecrypter(rules),
    now: () => new Date(),
    credentialsFor: credentialStore(pool, KEYS),
    posFetch: fetch,
    signal: new AbortController().signal,
    log: { error: (about: object) => void logged.push(about as Record<string, unknown>) },
  };
  // As if the provider's module had renewed no grants when these settings were stored.
  await pool.query(`UPDATE locations SET grant_sha256 = NULL WHERE location_id = 'fine'`);
  await renewConnections(deps);
  expect(await readGrant(pool, 'fine')).toMatchObject({ daysLeft: 13 });
  await renewConnections(deps);
  expect(spent).toEqual(['first', 'other', 'first+', 'other+']);
  expect(logged.slice(0, 2)).toEqual([
    {
      locationId: 'broken',
      integration: 'rotating',
      problem: 'reconnect needed',
      cause: { code: 'reconnect_needed' },
    },
    {
      locationId: 'unreadable',
      integration: 'rotating',
      problem: expect.stringMatching(/^settings cannot be decrypted/) as string,
      cause: { code: 'settings_sealed', keyId: expect.any(String) as string },
    },
  ]);
  expect(logged).toHaveLength(4);

  expect(await readGrant(pool, 'paused')).toMatchObject({ daysLeft: 13, lastsUntil: expect.any(Date) as Date });
  expect(await readGrant(pool, 'broken')).toBeNull();
  expect(await readGrant(pool, 'quiet')).toBeNull();
});

it('a location shows no grant of its earlier settings', async () => {
  const put = (refreshToken: string): Promise<unknown> =>
    putLocation(pool, rules, { locationId: 'fine', integration: 'rotating', settings: { refreshToken } });
  await put('of another authorisation');
  expect(await readGrant(pool, 'fine')).toBeNull();
  await put('first');
  expect(await readGrant(pool, 'fine')).toMatchObject({ daysLeft: 13 });
});
