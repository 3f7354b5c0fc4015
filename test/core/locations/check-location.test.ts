import { beforeAll, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { checkLocation, type CheckedLocation } from '../../../src/core/locations/check-location.ts';
import { GiveUp, NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import { credentialStore } from '../../../src/core/locations/credential-store.ts';
import { settingsDecrypter } from '../../../src/core/locations/locations.ts';
import { pauseLocation } from '../../../src/core/kitchens/pause-location.ts';
import { putLocation } from '../../../src/core/locations/put-location.ts';
import type { PosContext } from '../../../src/core/domain/provider.ts';
import { parseSettingsKeys } from '../../../src/core/locations/settings-key.ts';
import { locationRules, plainProvider } from '../../support/location-rules.ts';
import { testPool } from '../../support/test-pool.ts';

const NOW = new Date('2026-01-31T18:30:00Z');

const plain = plainProvider('plain', { settings: z.strictObject({ site: z.string().meta({ shown: true }) }) });
const check = vi.fn<(context: PosContext<unknown>) => Promise<void>>();
const rules = locationRules(plain, { ...plain, integration: 'asked', check });

const pool = testPool({ max: 4 });
beforeAll(async () => {
  for (const integration of rules.registry.keys()) {
    await putLocation(pool, rules, { locationId: integration, integration, settings: { site: 'one' } });
  }
});

function ask(
  locationId = 'asked',
  { decryptSettings = settingsDecrypter(rules), withinMs = 5_000 } = {},
): Promise<CheckedLocation> {
  const deps = {
    pool,
    decryptSettings,
    credentialsFor: credentialStore(pool, rules.keys),
    posFetch: fetch,
    allowedHosts: rules.allowedHosts,
    now: () => NOW,
  };
  return checkLocation(deps, locationId, withinMs);
}

it('the check of a location calls its POS with the settings and credentials of an order', async () => {
  check.mockResolvedValueOnce();
  expect(await ask()).toEqual({ locationId: 'asked', state: 'ok' });
  expect(check).toHaveBeenLastCalledWith({
    settings: { site: 'one' },
    now: NOW,
    signal: expect.any(AbortSignal) as AbortSignal,
    credentials: { accessToken: expect.any(Function) as () => unknown },
    fetch,
  });
});

it('the check also calls the POS of a paused location', async () => {
  await putLocation(pool, rules, { locationId: 'paused', integration: 'asked', settings: { site: 'one' } });
  await pauseLocation(pool, 'paused');
  check.mockResolvedValueOnce();
  expect(await ask('paused')).toEqual({ locationId: 'paused', state: 'ok' });
});

it('the check says "unchecked" if the POS has no call for a check', async () => {
  expect(await ask('plain')).toEqual({
    locationId: 'plain',
    state: 'unchecked',
    detail: expect.stringMatching(/^this POS has no call/) as string,
  });
});

it.each([
  [
    'no connection',
    new TryAgain('GET https://pos: no connection', { sent: false }),
    /could not be reached.*GET/,
    /in a minute/,
  ],
  [
    'an answer 429',
    new TryAgain('429', { sent: false, retryAfterMs: 30_500 }),
    /could not be reached/,
    /again in 31 s/,
  ],
  [
    'a wrong setting',
    new NeedsOperator('site is another one'),
    /^site is another one$/,
    /expediter location change --settings - asked/,
  ],
  ['a refusal', new GiveUp('never', { reason: 'no' }), /^never$/, /expediter location change/],
  [
    'a fault of the provider, without its text',
    new TypeError('secret-1'),
    /^unexpected TypeError$/,
    /fault in the provider/,
  ],
])('the check reports %s, and what to do', async (_name, error, problem, toDo) => {
  check.mockRejectedValueOnce(error);
  expect(await ask()).toEqual({
    locationId: 'asked',
    state: 'failed',
    problem: expect.stringMatching(problem) as string,
    toDo: expect.stringMatching(toDo) as string,
  });
});

it('the check reports that settings cannot be decrypted, and not that they are wrong', async () => {
  const otherKeys = parseSettingsKeys(`k2:${Buffer.alloc(32, 8).toString('base64')}`);
  const decryptSettings = settingsDecrypter({ ...rules, keys: otherKeys });
  expect(await ask('asked', { decryptSettings })).toEqual({
    locationId: 'asked',
    state: 'failed',
    problem: expect.stringMatching(/^settings cannot be decrypted/) as string,
    toDo: expect.stringContaining('SETTINGS_KEY') as string,
  });
});

it('the check ends at its time-out even if the provider ignores the signal', async () => {
  check.mockReturnValueOnce(new Promise(() => {}));
  expect(await ask('asked', { withinMs: 50 })).toMatchObject({
    locationId: 'asked',
    state: 'failed',
    problem: expect.stringContaining('no answer in 0.05 s') as string,
  });
});

it('the check refuses an unknown location', async () => {
  await expect(ask('nowhere')).rejects.toMatchObject({
    name: 'WrongLocation',
    message: 'no location is called "nowhere"',
  });
});
