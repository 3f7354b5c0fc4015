import { beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { connectLocation } from '../../../src/core/locations/connect-location.ts';
import { GiveUp, NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import { findLocation } from '../../../src/core/locations/locations.ts';
import { putLocation } from '../../../src/core/locations/put-location.ts';
import type { Connection } from '../../../src/core/domain/provider.ts';
import { unseal } from '../../../src/core/locations/settings-key.ts';
import { locationRules, plainProvider } from '../../support/location-rules.ts';
import { testPool } from '../../support/test-pool.ts';

const pool = testPool({ max: 4 });
let answer: () => Promise<Connection>;

const acme = plainProvider('acme', {
  settings: z.strictObject({ site: z.string(), key: z.string().optional(), mode: z.string().default('live') }),
  connect: () => answer(),
});
const rules = { ...locationRules(acme), publicUrl: 'https://expediter.example.com' };

beforeEach(async () => {
  await pool.query('DELETE FROM webhook_tokens');
  await put({ site: 'one' });
});

function put(settings: object): Promise<unknown> {
  return putLocation(pool, rules, { locationId: 'club-1', integration: 'acme', settings });
}
const connect = () => connectLocation({ pool, rules, posFetch: fetch, now: () => new Date() }, 'club-1');
async function validTokens(): Promise<number> {
  return (await pool.query('SELECT FROM webhook_tokens WHERE revoked_at IS NULL')).rows.length;
}
async function settings(): Promise<unknown> {
  return unseal(rules.keys, (await findLocation(pool, 'club-1'))?.sealedSettings ?? '', 'locations/club-1');
}

it('connecting a location adds the settings from the POS to the stored settings, and adds no defaults', async () => {
  answer = async () => ({ done: ['Done.'], todo: [], settings: { key: 'from the POS' } });
  expect(await connect()).toMatchObject({ done: ['Done.'], todo: [] });
  expect(await settings()).toEqual({ site: 'one', key: 'from the POS' });
});

it('connecting fails if somebody else changes the settings during the call to the POS, and keeps that change and the new token', async () => {
  answer = async () => {
    await put({ site: 'two' });
    return { done: [], todo: [], settings: { key: 'from the POS' } };
  };
  await expect(connect()).rejects.toThrow('the settings of the location were changed meanwhile');
  expect(await settings()).toEqual({ site: 'two' });
  expect(await validTokens()).toBe(1);
});

it("connecting revokes its new token if neither the POS nor a person got the webhook's URL", async () => {
  answer = async () => ({ done: [], todo: ['Open a page.'], unused: true });
  expect(await connect()).toEqual({ tokenId: expect.any(String) as string, done: [], todo: ['Open a page.'] });
  expect(await validTokens()).toBe(0);
});

it('connecting removes a setting that the POS has used up', async () => {
  await put({ site: 'one', key: 'a code' });
  answer = async () => ({ done: [], todo: [], settings: { key: undefined } });
  await connect();
  expect(await settings()).toEqual({ site: 'one' });
});

it.each([
  ['no longer valid if the POS refused the token', new NeedsOperator('401'), 0],
  ['no longer valid if the POS will never take the token', new GiveUp('no', { reason: 'no' }), 0],
  ['no longer valid if the POS was not reached', new TryAgain('no connection', { sent: false }), 0],
  ['still valid if the answer of the POS was lost', new TryAgain('no answer', { sent: true }), 1],
  ['still valid if the provider has a fault', new TypeError('oops'), 1],
])('after connecting has failed, the new token is %s', async (_name, error, tokens) => {
  answer = () => Promise.reject(error);
  await expect(connect()).rejects.toBe(error);
  expect(await validTokens()).toBe(tokens);
});
