import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issueToken } from '../../src/core/locations/webhook-tokens.ts';
import { runCli } from '../support/run-cli.ts';
import type { Ended } from '../../world/processes/run-program.ts';
import { runJson } from '../support/run-json.ts';
import { runRefused } from '../support/run-refused.ts';
import { startStage, type Stage } from '../support/operator-stage.ts';
import { statusWebhook } from '../../world/pos/status-webhook.ts';
import { until } from '../../world/processes/until.ts';

let stage: Stage;
let env: Record<string, string>;

beforeAll(async () => {
  stage = await startStage({ env: { PUBLIC_URL: 'http://127.0.0.1:9' } });
  env = stage.env;
});
afterAll(() => stage?.stop());

const put = (locationId: string): Promise<Ended> =>
  runCli(
    env,
    ['location', 'put', '--location', locationId, '--integration', 'standard', '--settings', '-'],
    '{"ordersUrl":"http://127.0.0.1:9/","unsigned":true}',
  );

describe('expediter location put', () => {
  it('suggests to issue a token only if the location has no valid one', async () => {
    const said = async (): Promise<string> => (await put('new')).out;
    const asking = 'new is served by standard. For its webhooks, run: expediter token issue --location new\n';
    expect(await said()).toBe(asking);
    const { tokenId } = (await runJson(env, ['token', 'issue', '--location', 'new'])) as { tokenId: string };
    expect(await said()).toBe('new is unchanged\n');
    await runJson(env, ['token', 'revoke', tokenId]);
    expect(await said()).toBe(asking.replace('served by standard', 'unchanged'));
  });
});

describe('expediter location remove', () => {
  it('refuses a location that is not paused, and says how to pause it', async () => {
    await put('open');
    expect(await runRefused(1, env, ['location', 'remove', 'open'])).toBe(
      'error: open cannot be removed: it takes orders. Pause it first\n',
    );
    expect(await runJson(env, ['location', 'show', 'open'])).toMatchObject({ locationId: 'open' });
  });

  it('refuses a location with open orders, and names them with their state', async () => {
    await put('busy');
    await runJson(env, ['location', 'pause', 'busy']);
    for (const id of ['held', ...Array.from({ length: 6 }, (_, n) => `busy-${n}`)])
      await stage.seedOrder({ serviceOrderId: id, locationId: 'busy' });
    await stage.query(`UPDATE placements SET state = 'held', finished_at = NULL WHERE service_order_id = 'held'`);
    const error = await runRefused(1, env, ['location', 'remove', 'busy']);
    expect(error).toContain(`orders that have not ended: held (held), busy-0 (sent), `);
    expect(error).toContain(' and 2 more. ');
  });

  it('removes a paused location, whose orders can still be read', async () => {
    await put('gone');
    await stage.seedOrder({ serviceOrderId: 'past', locationId: 'gone' });
    const path = await stage.webhookPath('gone');
    const { body } = await stage.post(path, statusWebhook({ serviceOrderId: 'past', status: 'COMPLETED' }));
    expect(body).toMatchObject({ outcome: 'applied' });
    await runJson(env, ['location', 'pause', 'gone']);
    await stage.query(
      `INSERT INTO location_last_seen (location_id, integration, last_seen_at) VALUES ('gone', 'standard', now())
       ON CONFLICT DO NOTHING`,
    );
    const removed = await runJson(env, ['location', 'remove', 'gone']);
    expect(removed).toEqual({ locationId: 'gone', removed: true, tokens: 1 });
    const late = statusWebhook({ serviceOrderId: 'past', status: 'READY' });
    await until(async () => (await stage.post(path, late)).status === 401);

    expect(await stage.query(`SELECT FROM location_last_seen WHERE location_id = 'gone'`)).toEqual([]);
    for (const act of ['show', 'remove']) await runRefused(3, env, ['location', act, 'gone']);
    expect(await runJson(env, ['order', 'show', 'past'])).toMatchObject({ order: { status: 'completed' } });
    expect(await runJson(env, ['webhook', 'show', String(body['webhookId'])])).toMatchObject({ outcome: 'applied' });

    await put('gone');
    expect(await runJson(env, ['location', 'show', 'gone'])).toMatchObject({ paused: false, validTokens: 0 });
  });

  it('removes a location whose settings cannot be decrypted', async () => {
    await put('sealed');
    await runJson(env, ['location', 'pause', 'sealed']);
    const other = `other:${Buffer.alloc(32, 9).toString('base64')}`;
    expect(await runJson({ ...env, SETTINGS_KEY: other }, ['location', 'remove', 'sealed'])).toMatchObject({
      removed: true,
    });
  });
});

describe('expediter token list', () => {
  it('shows the expiry and the last use of a token', async () => {
    await put('tokens');
    await issueToken(stage.pool, { locationId: 'tokens', expiresAt: new Date(Date.now() + 86_400_000) });
    await stage.query(`UPDATE webhook_tokens SET last_used_at = now() WHERE location_id = 'tokens'`);
    await issueToken(stage.pool, { locationId: 'tokens' });
    type Row = { expiresAt: string | null; lastUsedAt: string | null; state: string };
    expect(await runJson<Row[]>(env, ['token', 'list', '--location', 'tokens'])).toMatchObject([
      { state: 'valid', expiresAt: expect.any(String), lastUsedAt: expect.any(String) },
      { state: 'valid', expiresAt: null, lastUsedAt: null },
    ]);
    const { out } = await runCli(env, ['token', 'list', '--location', 'tokens']);
    expect(out).toMatch(/^token .* state .* expires .* last used$/m);
  });
});
