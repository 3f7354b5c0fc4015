import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../support/run-cli.ts';
import { runJson } from '../support/run-json.ts';
import { post, startSystem, statusWebhook, type System } from '../support/start-system.ts';
import { until } from '../support/until.ts';

let system: System;
let env: Record<string, string>;

beforeAll(async () => {
  system = await startSystem({ env: { PUBLIC_URL: 'http://127.0.0.1:9' } });
  env = system.env;
});
afterAll(() => system?.stop());

const put = (locationId: string): Promise<unknown> =>
  runJson(
    env,
    ['location', 'put', '--location', locationId, '--integration', 'standard', '--settings', '-'],
    '{"ordersUrl":"http://127.0.0.1:9/","unsigned":true}',
  );

describe('expediter location put', () => {
  it('asks for a token where none is valid, and nowhere else', async () => {
    const args = ['location', 'put', '--location', 'new', '--integration', 'standard', '--settings', '-'];
    const said = async (): Promise<string> =>
      (await runCli(env, args, '{"ordersUrl":"http://127.0.0.1:9/","unsigned":true}')).out;
    const asking = 'new is served by standard. For its webhooks, run: expediter token issue --location new\n';
    expect(await said()).toBe(asking);
    const { tokenId } = (await runJson(env, ['token', 'issue', '--location', 'new'])) as { tokenId: string };
    expect(await said()).toBe('new is unchanged\n');
    await runJson(env, ['token', 'revoke', tokenId]);
    expect(await said()).toBe(asking.replace('served by standard', 'unchanged'));
  });
});

describe('expediter location remove', () => {
  it('refuses one that takes orders, and says what to do first', async () => {
    await put('open');
    const { code, error } = await runCli(env, ['location', 'remove', 'open']);
    expect({ code, error }).toEqual({
      code: 1,
      error: 'error: open cannot be removed: it takes orders. Pause it first: expediter location pause open\n',
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

  it('removes a paused one: its webhooks are 401 after a moment, and its orders can still be read', async () => {
    await put('gone');
    await system.seedOrder({ serviceOrderId: 'past', locationId: 'gone' });
    const url = await system.webhookUrl('gone');
    const { body } = await post(url, statusWebhook({ serviceOrderId: 'past', status: 'COMPLETED' }));
    expect(body).toMatchObject({ outcome: 'applied' });
    await runJson(env, ['location', 'pause', 'gone']);
    await system.query(
      `INSERT INTO location_last_seen (location_id, integration, last_seen_at) VALUES ('gone', 'standard', now())
       ON CONFLICT DO NOTHING`,
    );
    expect(await runJson(env, ['location', 'remove', 'gone'])).toEqual({
      locationId: 'gone',
      removed: true,
      tokens: 1,
    });
    await until(
      async () => (await post(url, statusWebhook({ serviceOrderId: 'past', status: 'READY' }))).status === 401,
    );

    expect(await system.query(`SELECT FROM location_last_seen WHERE location_id = 'gone'`)).toEqual([]);
    expect(await runCli(env, ['location', 'show', 'gone'])).toMatchObject({ code: 3 });
    expect(await runCli(env, ['location', 'remove', 'gone'])).toMatchObject({ code: 3 });
    expect(await runJson(env, ['order', 'show', 'past'])).toMatchObject({ order: { status: 'completed' } });
    expect(await runJson(env, ['webhook', 'show', String(body['webhookId'])])).toMatchObject({ outcome: 'applied' });

    await put('gone');
    expect(await runJson(env, ['location', 'show', 'gone'])).toMatchObject({ paused: false, validTokens: 0 });
  });

  it('removes one whose settings nobody can open any more', async () => {
    await put('sealed');
    await runJson(env, ['location', 'pause', 'sealed']);
    const other = `other:${Buffer.alloc(32, 9).toString('base64')}`;
    expect(await runJson({ ...env, SETTINGS_KEY: other }, ['location', 'remove', 'sealed'])).toMatchObject({
      removed: true,
    });
  });
});

describe('expediter token list', () => {
  it('shows until when a token is valid, and when a webhook came with it last', async () => {
    await put('tokens');
    await system.webhookUrl('tokens', { expiresAt: new Date(Date.now() + 86_400_000) });
    await system.query(`UPDATE webhook_tokens SET last_used_at = now() WHERE location_id = 'tokens'`);
    await system.webhookUrl('tokens');
    type Row = { expiresAt: string | null; lastUsedAt: string | null; state: string };
    expect(await runJson<Row[]>(env, ['token', 'list', '--location', 'tokens'])).toMatchObject([
      { state: 'valid', expiresAt: expect.any(String), lastUsedAt: expect.any(String) },
      { state: 'valid', expiresAt: null, lastUsedAt: null },
    ]);
    const { out } = await runCli(env, ['token', 'list', '--location', 'tokens']);
    expect(out).toMatch(/^token .* state .* expires .* last used$/m);
  });
});
