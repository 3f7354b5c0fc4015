import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import type { PosContext, Provider } from '../../../src/core/domain/provider.ts';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../../support/ask-operator.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { until } from '../../support/until.ts';

type Location = Record<string, unknown> & {
  locationId: string;
  lastSeenAt: string | null;
  webhooks: number[];
  errors: number[];
};
type Token = Record<string, unknown> & { tokenId: string; state: string };

const SECRET = 'the-secret-of-a-till';
const ordersUrl = 'http://127.0.0.1:9/orders';
const check = vi.fn<(context: PosContext<unknown>) => Promise<string | void>>();

/** A POS that can be asked whether its settings are right. */
const asked: Provider = {
  integration: 'asked',
  settings: z.object({ key: z.string() }),
  deduplicates: true,
  createOrder: async () => ({}),
  translateWebhook: () => [],
  check,
};
const unasked: Provider = { ...asked, integration: 'unasked' };
delete unasked.check;

const BY = { kind: 'operator_token', id: 'operator_token', name: 'OPERATOR_TOKEN' };

let stage: Stage;
let operator: Operator;

beforeAll(async () => {
  stage = await startStage({
    providers: [asked, unasked],
    env: { OPERATOR_TOKEN, PUBLIC_URL: 'https://expediter.test' },
  });
  operator = await askOperator(stage.app);
  await stage.addLocation('club/1', { ordersUrl });
  await stage.addLocation('silent', { ordersUrl });
  await stage.addLocation('asked-1', { key: SECRET }, 'asked');
  await stage.addLocation('unasked-1', { key: SECRET }, 'unasked');
});
afterAll(() => stage?.stop());

const audited = async (action: string, about: object): Promise<unknown> => {
  const { body } = await operator.get(`/audit?action=${encodeURIComponent(action)}&limit=200`);
  return expect(body['actions']).toContainEqual(
    expect.objectContaining({ by: BY, source: '127.0.0.1', action, outcome: 'done', ...about }),
  );
};
const sum = (list: readonly number[]): number => list.reduce((total, count) => total + count, 0);
const show = async (id: string): Promise<Location & { tokens: Token[] }> => {
  const { status, body } = await operator.get(`/locations/${encodeURIComponent(id)}`);
  expect(status).toBe(200);
  return body as Location & { tokens: Token[] };
};

describe('a location', () => {
  it('says what was heard of it in the last hour, whichever process heard it, and what went wrong', async () => {
    const path = await stage.webhookPath('club/1');
    const about = { databaseUrl: stage.databaseUrl };
    const [one, other] = await Promise.all([startStage(about), startStage(about)]);
    for (const each of [one, other, other])
      expect((await each.post(path, { eventType: 'menu.changed' })).status).toBe(200);
    expect((await one.post(path, 'not json')).body).toMatchObject({ outcome: 'dropped' });
    expect((await one.post(path.replace(/token=.*/, 'token=wrong'), {})).status).toBe(401);

    // Both write what they heard as they stop, and the third is asked.
    await Promise.all([one.stop(), other.stop()]);
    const heard = await show('club/1');
    expect(sum(heard.errors)).toBe(2);
    expect([heard.webhooks.length, heard.errors.length]).toEqual([12, 12]);
    // It may have been at the turn of five minutes.
    expect(sum(heard.webhooks.slice(-2))).toBe(5);
    expect(Math.abs(Date.parse(heard.lastSeenAt ?? '') - Date.now())).toBeLessThan(20_000);

    const { body } = await operator.get('/locations');
    const locations = body['locations'] as Location[];
    expect(locations.map(({ locationId }) => locationId)).toEqual(['asked-1', 'club/1', 'silent', 'unasked-1']);
    const { tokens: _tokens, webhookUrl: _url, knows: _knows, actions: _acts, grant, ...listed } = heard;
    expect(grant).toBeNull();
    expect(locations[1]).toEqual(listed);
    expect(locations[2]).toMatchObject({ lastSeenAt: null, webhooks: zeros(), errors: zeros(), pausedAt: null });
  });

  it('what was heard longer ago than an hour, or through another integration, is not said', async () => {
    await stage.addLocation('moved', { key: SECRET }, 'asked');
    await stage.query(`INSERT INTO location_last_seen VALUES ('moved', 'standard', now())`);
    const drops = (ago: number, notStored: number): Promise<unknown> =>
      stage.query(
        `INSERT INTO dropped_bytes VALUES ('moved', (now() AT TIME ZONE 'UTC')::date - $1::int, 1, $2)
         ON CONFLICT (location_id) DO UPDATE SET day = excluded.day, not_stored = excluded.not_stored`,
        [ago, notStored],
      );
    await drops(1, 7);
    expect(await show('moved')).toMatchObject({ notStored: 0 });
    await drops(0, 8);
    expect(await show('moved')).toMatchObject({ notStored: 8 });
    await stage.query(
      `INSERT INTO traffic SELECT 'moved', date_trunc('minute', now()) - make_interval(mins => n), 'asked', 'webhook', 'dropped', 1
       FROM generate_series(0, 120) AS n`,
    );
    const { lastSeenAt, webhooks, errors } = await show('moved');
    expect(lastSeenAt).toBeNull();
    expect(webhooks.slice(0, 11)).toEqual(Array.from({ length: 11 }, () => 5));
    expect(webhooks.at(-1)).toBeLessThanOrEqual(5);
    expect(errors).toEqual(webhooks);
  });

  it('says how long its connection to the POS lasts, in whole days, where it ends at all', async () => {
    await stage.addLocation('ending', { ordersUrl });
    const keep = (seed: string, lastsS: number | null): Promise<unknown> =>
      stage.query(
        `WITH kept AS (
           INSERT INTO credentials (seed_sha256, integration, granted_at, lasts_s)
           VALUES ($1::text::bytea, 'standard', now() - interval '1 day', $2::integer)
         )
         UPDATE locations SET grant_sha256 = $1::text::bytea WHERE location_id = 'ending'`,
        [seed, lastsS],
      );
    await keep('ends', 2.5 * 86_400);
    const { grant } = (await show('ending')) as { grant?: Record<string, unknown> };
    const days = (from: unknown, to: unknown): number =>
      (Date.parse(String(to)) - Date.parse(String(from))) / 86_400_000;
    expect(days(grant?.['grantedAt'], grant?.['lastsUntil'])).toBeCloseTo(2.5);
    expect(grant?.['daysLeft']).toBe(1);
    await keep('has ended', 3600);
    expect(await show('ending')).toMatchObject({ grant: { daysLeft: -1 } });
    await keep('never ends', null);
    expect(await show('ending')).toMatchObject({ grant: { daysLeft: null, lastsUntil: null } });
  });

  it('shows its tokens and where its POS calls, and no secret', async () => {
    const [valid, expired] = [await newToken('club/1'), await newToken('club/1')];
    await stage.query(`UPDATE webhook_tokens SET label = 'till', expires_at = now() WHERE token_id = $1`, [
      expired.tokenId,
    ]);
    await stage.query(`UPDATE webhook_tokens SET integration = 'asked' WHERE token_id = $1`, [
      (await newToken('club/1')).tokenId,
    ]);
    const shown = await show('club/1');
    expect(shown).toMatchObject({
      webhookUrl: 'https://expediter.test/webhook/standard/club%2F1',
      knows: { check: false, connect: false },
    });
    const states = shown.tokens.map(({ state }) => state);
    expect(states).toEqual(['valid', 'valid', 'expired', 'of another integration']);
    expect(shown.tokens[1]).toEqual({
      tokenId: valid.tokenId,
      label: null,
      integration: 'standard',
      state: 'valid',
      createdAt: expect.any(String) as string,
      expiresAt: null,
      revokedAt: null,
      lastUsedAt: null,
    });
    expect(shown.tokens[2]).toMatchObject({ label: 'till' });
    expect(await show('asked-1')).toMatchObject({ knows: { check: true, connect: false } });
    const everything = JSON.stringify([shown, await show('asked-1')]);
    for (const secret of [valid.token, expired.token, SECRET, ordersUrl]) expect(everything).not.toContain(secret);
  });
});

describe('a check', () => {
  it('asks the POS with the settings of the location, a paused one too', async () => {
    check.mockResolvedValueOnce();
    expect((await operator.post('/locations/asked-1/pause')).status).toBe(200);
    const { status, body } = await operator.post('/locations/asked-1/check');
    expect([status, body]).toEqual([200, { locationId: 'asked-1', state: 'ok' }]);
    expect(check.mock.lastCall?.[0]).toMatchObject({ settings: { key: SECRET } });
    await audited('check', { locationId: 'asked-1', after: 'ok' });
    expect((await operator.post('/locations/asked-1/resume')).status).toBe(200);
  });

  it('says what is wrong and what to do', async () => {
    check.mockRejectedValueOnce(new NeedsOperator('key: the POS refuses it'));
    expect((await operator.post('/locations/asked-1/check')).body).toEqual({
      locationId: 'asked-1',
      state: 'failed',
      problem: 'key: the POS refuses it',
      toDo: expect.stringContaining('location put --location asked-1') as string,
    });
    check.mockRejectedValueOnce(new TryAgain('HTTP 503', { sent: false }));
    expect((await operator.post('/locations/asked-1/check')).body).toMatchObject({ state: 'failed' });
    await audited('check', { locationId: 'asked-1', after: 'failed' });
  });

  it('says where nobody can be asked', async () => {
    expect((await operator.post('/locations/unasked-1/check')).body).toEqual({
      locationId: 'unasked-1',
      state: 'unchecked',
      detail: expect.stringContaining('unasked') as string,
    });
  });

  it('tells no secret, not even of settings that cannot be read', async () => {
    await stage.addLocation('broken', { key: SECRET }, 'asked');
    await stage.query(`UPDATE locations SET integration = 'standard' WHERE location_id = 'broken'`);
    const { body, text } = await operator.post('/locations/broken/check');
    expect(body).toMatchObject({ state: 'failed', problem: expect.stringContaining('ordersUrl') });
    expect(text + stage.logged.join('')).not.toContain(SECRET);
  });

  it('under way is no obstacle to a process that stops', async () => {
    const hanging = await startStage({ databaseUrl: stage.databaseUrl, providers: [asked] });
    const hers = await askOperator(await hanging.listen());
    check.mockClear();
    check.mockImplementationOnce(() => new Promise(() => {}));
    const asking = hers.post('/locations/asked-1/check');
    await until(() => check.mock.calls.length === 1);
    await hanging.stop();
    expect((await asking).status).toBe(503);
  });
});

describe('a token', () => {
  it('is shut out, the others are not, and what it was is still shown', async () => {
    const [{ tokenId, token }, other] = [await newToken('silent'), await newToken('silent')];
    const knock = async (key: string): Promise<number> =>
      (await stage.post(`/webhook/standard/silent?token=${key}`, { eventType: 'menu.changed' })).status;
    const path = `/locations/silent/tokens/${tokenId}/revoke`;
    const { status, body } = await operator.post(path);
    expect([status, body]).toEqual([200, { tokenId, revoked: true }]);
    await audited('revoke', { locationId: 'silent', subject: tokenId });
    expect([await knock(token), await knock(other.token)]).toEqual([401, 200]);
    const [shown] = (await show('silent')).tokens;
    expect(shown).toMatchObject({ tokenId, state: 'revoked', revokedAt: expect.any(String) });
    expect((await operator.post(path)).status).toBe(200);
    expect((await show('silent')).tokens[0]).toEqual(expect.objectContaining({ revokedAt: shown?.['revokedAt'] }));
  });

  it('of another location is none of this one', async () => {
    const { tokenId } = await newToken('silent');
    expect((await operator.post(`/locations/asked-1/tokens/${tokenId}/revoke`)).status).toBe(404);
    expect((await show('silent')).tokens.find((each) => each.tokenId === tokenId)).toMatchObject({ state: 'valid' });
  });
});

function zeros(): number[] {
  return Array.from({ length: 12 }, () => 0);
}

async function newToken(locationId: string): Promise<{ tokenId: string; token: string; integration: string }> {
  const token = (await stage.webhookPath(locationId)).split('token=')[1] ?? '';
  const [row] = await stage.query(
    'SELECT token_id, integration FROM webhook_tokens WHERE location_id = $1 ORDER BY created_at DESC LIMIT 1',
    [locationId],
  );
  const { token_id: tokenId, integration } = row ?? {};
  return { tokenId: String(tokenId), integration: String(integration), token };
}
