import { afterAll, beforeAll, expect, it } from 'vitest';
import { recordLastSeen } from '../../src/core/locations/record-last-seen.ts';
import type { WebhookObserved } from '../../src/core/domain/observed.ts';
import { post, startSystem, type System } from '../../world/system/start-system.ts';

let system: System;
beforeAll(async () => {
  system = await startSystem({ stepped: 'all' });
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await system.addLocation('silent', { ordersUrl: 'http://127.0.0.1:9/orders' });
});
afterAll(() => system?.stop());

const tokens = (): Promise<Record<string, unknown>[]> =>
  system.query('SELECT token_id, last_used_at FROM webhook_tokens ORDER BY created_at');
const heard = (): Promise<Record<string, unknown>[]> => system.query('SELECT * FROM location_last_seen');
const isNow = (at: unknown): boolean => Math.abs(Number(at) - Date.now()) < 60_000;

it('a process that stops stores when each location last sent a webhook, and with which token', async () => {
  const [used, unused] = [await system.webhookUrl('club-1'), await system.webhookUrl('club-1')];
  expect(unused).not.toBe(used);
  expect((await post(used, { eventType: 'menu.changed' })).status).toBe(200);
  await system.drain(0);
  const [location, ...others] = await heard();
  expect(others).toEqual([]);
  expect(location).toMatchObject({ location_id: 'club-1', integration: 'standard' });
  expect(isNow(location?.['last_seen_at'])).toBe(true);
  const [first, second] = await tokens();
  expect(isNow(first?.['last_used_at'])).toBe(true);
  expect(second).toMatchObject({ last_used_at: null });
});

it('an older time of the last webhook does not replace a newer one', async () => {
  const [{ token_id: tokenId } = {}] = await tokens();
  const late = recordLastSeen(system.pool);
  late.observe(webhook('club-1', String(tokenId)));
  late.observe(webhook('removed', '00000000-0000-4000-8000-000000000000'));
  await system.query(`UPDATE location_last_seen SET last_seen_at = 'infinity'`);
  await system.query(`UPDATE webhook_tokens SET last_used_at = 'infinity' WHERE token_id = $1`, [tokenId]);
  await late.write();
  expect((await heard()).map((row) => [row['location_id'], row['last_seen_at']])).toEqual([['club-1', Infinity]]);
  expect((await tokens())[0]?.['last_used_at']).toBe(Infinity);
});

it('times of webhooks that could not be stored are stored later', async () => {
  const [{ token_id: tokenId } = {}] = await tokens();
  await system.query('DELETE FROM location_last_seen');
  let away = true;
  const pool = {
    query: async (...args: [string, unknown[]]) =>
      away ? Promise.reject(new Error('away')) : system.pool.query(...args),
  };
  const one = recordLastSeen(pool as unknown as typeof system.pool);
  one.observe(webhook('club-1', String(tokenId)));
  await expect(one.write()).rejects.toThrow('away');
  away = false;
  await one.write();
  expect(await heard()).toHaveLength(1);
});

function webhook(locationId: string, tokenId: string): WebhookObserved {
  return {
    what: 'webhook',
    outcome: 'ignored',
    requestId: '1',
    trace: undefined,
    milliseconds: 1,
    integration: 'standard',
    locationId,
    tokenId,
    webhookId: '1',
    serviceOrderIds: [],
    dropped: undefined,
  };
}
