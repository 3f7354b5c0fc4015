import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keysInUse, parseSettingsKeys, seal } from '../../src/core/locations/settings-key.ts';
import { getLocation, settingsDecrypter } from '../../src/core/locations/locations.ts';
import { rekey } from '../../src/core/locations/rekey.ts';
import { issueSignalToken } from '../../src/core/signals/signal-tokens.ts';
import { registry } from '../../src/providers/index.ts';
import { runCli } from '../support/run-cli.ts';
import { startStage, type Stage } from '../support/operator-stage.ts';
import { statusWebhook } from '../../world/pos/status-webhook.ts';
import { runJson } from '../support/run-json.ts';

const OLD = `old:${Buffer.alloc(32, 1).toString('base64')}`;
const NEW = `new:${Buffer.alloc(32, 2).toString('base64')}`;
const BOTH = `${NEW},${OLD}`;
/** What was sealed before the new key came: two locations, the former settings of one, a grant, one that its owner has not
 * confirmed, the secret of a platform, a dropped webhook. */
const SEED = Buffer.from('seed');
const GRANT = { accessToken: 'a', refreshToken: 'r' };
const LINK = '0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11';
const COUNTS = { settings: 4, grants: 2, webhooks: 1 };
const READABLE = { settings: { ordersUrl: { origin: 'http://127.0.0.1:9/…' }, secret: {} } };

let stage: Stage;
let env: Record<string, string>;
let dropped: string;

const counted = (name: 'rewritten' | 'current' | 'unreadable', more: object = {}): object => ({
  ...Object.fromEntries(
    Object.entries(COUNTS).map(([place, count]) => [place, { rewritten: 0, current: 0, unreadable: 0, [name]: count }]),
  ),
  dryRun: false,
  missingKeys: [],
  misplaced: [],
  ...more,
});
const sealedTexts = (): Promise<Record<string, unknown>[]> =>
  stage.query(
    `SELECT settings AS text FROM locations UNION ALL SELECT settings FROM former_settings UNION ALL SELECT "grant" FROM credentials
     UNION ALL SELECT sealed FROM connect_links UNION ALL SELECT sealed FROM signal_tokens UNION ALL SELECT sealed FROM webhooks WHERE sealed IS NOT NULL ORDER BY 1`,
  );
/** The row that the statement is about to write has changed under it, as when another process commits first. */
function overtakenAt(locationId: string, theirs: string): Stage['pool'] {
  const real = stage.pool.query.bind(stage.pool);
  let raced = false;
  return Object.assign(Object.create(stage.pool) as Stage['pool'], {
    query: async (text: string, values: unknown[]) => {
      if (!raced && text.startsWith('UPDATE locations') && String(values[0]) === locationId) {
        raced = true;
        await real('UPDATE locations SET settings = $1 WHERE location_id = $2', [theirs, locationId]);
      }
      return real(text, values);
    },
  });
}

beforeAll(async () => {
  stage = await startStage({ env: { SETTINGS_KEY: OLD, WEBHOOK_RETENTION_DAYS: '14' } });
  env = { ...stage.env, SETTINGS_KEY: BOTH };
  const secret = `whsec_${Buffer.alloc(24, 3).toString('base64')}`;
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders', secret });
  await stage.addLocation('club-2', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await stage.query(
    `INSERT INTO former_settings (location_id, integration, settings)
     SELECT location_id, 'square', settings FROM locations WHERE location_id = 'club-2'`,
  );
  await stage.query(
    `INSERT INTO credentials (seed_sha256, integration, "grant", granted_at) VALUES ($1, 'pos', $2, now())`,
    [SEED, await seal(parseSettingsKeys(OLD), GRANT, `credentials/${SEED.toString('hex')}`)],
  );
  await stage.query(
    `INSERT INTO connect_links (link_id, sha256, location_id, integration, expires_at, sealed)
     VALUES ($1::uuid, $2, 'club-1', 'pos', now(), $3)`,
    [LINK, SEED, await seal(parseSettingsKeys(OLD), GRANT, `connect_links/${LINK}`)],
  );
  await issueSignalToken(stage.pool, parseSettingsKeys(OLD), { kind: 'shopify', secrets: ['hush'] });
  const answer = await stage.post(
    await stage.webhookPath('club-1'),
    statusWebhook({ serviceOrderId: 'x', status: 'READY' }),
  );
  expect(answer.body).toMatchObject({ outcome: 'dropped' });
  dropped = String(answer.body['webhookId']);
});
afterAll(() => stage?.stop());

describe('expediter rekey', () => {
  it('counts the encrypted texts in a dry run and changes nothing', async () => {
    const before = await sealedTexts();
    expect(await runJson(env, ['rekey', '--dry-run'])).toEqual(counted('rewritten', { dryRun: true }));
    expect(await sealedTexts()).toEqual(before);
  });

  it('exits 1 and names the missing key of texts that it cannot decrypt', async () => {
    const before = await sealedTexts();
    const { code, out, error } = await runCli({ ...env, SETTINGS_KEY: NEW }, ['rekey', '--json']);
    expect({ code, error }).toEqual({
      code: 1,
      error: expect.stringMatching(/^error: 7 cannot be decrypted: SETTINGS_KEY lacks key "old", [^\n]+\n$/),
    });
    expect(JSON.parse(out)).toEqual(counted('unreadable', { missingKeys: ['old'] }));
    expect(await sealedTexts()).toEqual(before);
  });

  it('exits 1 and names a key that has other bytes under the same id', async () => {
    const other = `old:${Buffer.alloc(32, 9).toString('base64')}`;
    const { code, error } = await runCli({ ...env, SETTINGS_KEY: other }, ['rekey']);
    expect({ code, error }).toEqual({ code: 1, error: expect.stringContaining('has other bytes under that id') });
  });

  it('keeps a text that somebody else writes during the rekey', async () => {
    const theirs = await seal(parseSettingsKeys(NEW), { ordersUrl: 'http://127.0.0.1:9/theirs' }, 'locations/club-2');
    const done = await rekey(overtakenAt('club-2', theirs), parseSettingsKeys(BOTH), false);
    expect(done.settings).toEqual({ rewritten: 3, current: 1, unreadable: 0 });
    const [row] = await stage.query(`SELECT settings FROM locations WHERE location_id = 'club-2'`);
    expect(row).toEqual({ settings: theirs });
  });

  it('names the missing key of a text that somebody else wrote during the rekey', async () => {
    const next = parseSettingsKeys(`next:${Buffer.alloc(32, 3).toString('base64')}`);
    const [row] = await stage.query(`SELECT settings FROM locations WHERE location_id = 'club-1'`);
    const put = (settings: unknown): Promise<unknown> =>
      stage.query(`UPDATE locations SET settings = $1 WHERE location_id = 'club-1'`, [settings]);
    await put(await seal(parseSettingsKeys(OLD), {}, 'locations/club-1'));
    const theirs = await seal(next, {}, 'locations/club-1');
    const done = await rekey(overtakenAt('club-1', theirs), parseSettingsKeys(BOTH), false);
    expect(done).toMatchObject({ settings: { unreadable: 1 }, missingKeys: ['next'] });
    await put(row?.['settings']);
  });

  it('encrypts every text with the new key', async () => {
    expect(await runJson(env, ['rekey'])).toEqual(counted('current'));
    const inWords = await runCli(env, ['rekey']);
    expect(inWords.out).toMatch(/^settings of locations and applications, secrets of signals +0 +4 +0$/m);
    expect(await keysInUse(stage.pool)).toEqual(new Map([['new', 7]]));
  });

  it('leaves a text that was encrypted for another row, and names the row', async () => {
    const swap = `UPDATE locations l SET settings = o.settings FROM locations o WHERE l.location_id <> o.location_id`;
    const rules = { registry, keys: parseSettingsKeys(BOTH), publicUrl: undefined };
    const open = settingsDecrypter(rules);
    const first = await getLocation(stage.pool, 'club-1');
    await open(first);
    await expect(open({ ...first, locationId: 'club-2' }), 'opened before').rejects.toThrow(
      'encrypted for locations/club-1',
    );
    await stage.query(swap);
    const { code, error } = await runCli(env, ['rekey']);
    expect({ code, error }).toEqual({
      code: 1,
      error: `error: 2 cannot be decrypted: the values in locations/club-1, locations/club-2 were encrypted for another row\n`,
    });
    for (const [locationId, other] of [
      ['club-1', 'club-2'],
      ['club-2', 'club-1'],
    ]) {
      expect(await runJson(env, ['location', 'show', String(locationId)])).toMatchObject({
        settings: {},
        settingsProblem: `settings cannot be decrypted: it was encrypted for locations/${other}, but is in locations/${locationId}`,
      });
    }
    await stage.query(swap);
    expect(await runJson(env, ['location', 'show', 'club-1'])).toMatchObject(READABLE);
  });

  it('makes the old key unnecessary for webhooks and replays', async () => {
    const alone = { ...env, SETTINGS_KEY: NEW };
    expect(await runJson(alone, ['location', 'show', 'club-1'])).toMatchObject(READABLE);
    const service = await startStage({ databaseUrl: stage.databaseUrl, env: { SETTINGS_KEY: NEW } });
    try {
      const path = await stage.webhookPath('club-2');
      const answer = await service.post(path, statusWebhook({ serviceOrderId: 'x', status: 'READY' }));
      expect(answer).toMatchObject({ status: 200, body: { outcome: 'unmatched' } });
    } finally {
      await service.stop();
    }
    await runCli(
      alone,
      ['location', 'put', '--location', 'club-1', '--integration', 'standard', '--settings', '-'],
      '{"ordersUrl":"http://127.0.0.1:9/orders","unsigned":true}',
    );
    expect(await runJson(alone, ['webhook', 'replay', dropped])).toMatchObject({ outcome: 'unmatched' });
  });
});
