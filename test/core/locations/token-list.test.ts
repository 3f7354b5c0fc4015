import type pg from 'pg';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { issueToken, revokeToken } from '../../../src/core/locations/webhook-tokens.ts';
import { recordLastSeen } from '../../../src/core/locations/record-last-seen.ts';
import { removeLocation } from '../../../src/core/locations/remove-location.ts';
import { tokenList, type TokenList } from '../../../src/core/locations/token-list.ts';
import { readPlans, type ReadPlans } from '../../support/read-plans.ts';
import { servicePools } from '../../support/test-pool.ts';

const AGE_S = 60;
const HOUR_MS = 3_600_000;

const { pool } = servicePools();

let list: TokenList;
beforeEach(async () => {
  await pool.query('DELETE FROM webhook_tokens');
  await pool.query('DELETE FROM removed_tokens');
  await pool.query('DELETE FROM locations');
  await pool.query(`INSERT INTO locations (location_id, integration, settings) VALUES ('club-1', 'standard', '')`);
  list = listOf(pool);
});
afterEach(() => vi.restoreAllMocks());

const listOf = (pool: pg.Pool, now = (): Date => new Date()): TokenList =>
  tokenList(pool, { ageS: AGE_S, now, log: { warn: () => {} } });

/** The pool, with each question in the hands of `query`. */
const through = (query: (ask: () => Promise<unknown>) => Promise<unknown>): pg.Pool =>
  ({ query: (...about: [string, unknown[]?]) => query(() => pool.query(...about)) }) as unknown as pg.Pool;

/** Connects a location again, as `location put` stores it. */
const putIntegration = (integration: string): Promise<unknown> =>
  pool.query(`UPDATE locations SET integration = $1, updated_at = now() WHERE location_id = 'club-1'`, [integration]);

/** Has what was changed so far lie further back than any refresh looks. */
async function pass(): Promise<void> {
  await pool.query(
    `UPDATE webhook_tokens SET created_at = created_at - interval '1 day', revoked_at = revoked_at - interval '1 day'`,
  );
  await pool.query(`UPDATE locations SET updated_at = updated_at - interval '1 day'`);
}

/** What a token opens after a refresh. */
async function refound(token: string): Promise<unknown> {
  await list.refresh();
  return list.find(token);
}

const later = (milliseconds: number): unknown =>
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + milliseconds);

it('the token list finds a valid token, with its location and expiry', async () => {
  const expiresAt = new Date('2100-01-01');
  const { token, tokenId } = await issueToken(pool, { locationId: 'club-1', expiresAt });
  const { token: lasting } = await issueToken(pool, { locationId: 'club-1' });
  await list.load();
  expect(list.find(token)).toEqual({
    tokenId,
    integration: 'standard',
    locationId: 'club-1',
    expiresAt: expiresAt.getTime(),
  });
  expect(list.find(lasting)).toMatchObject({ expiresAt: null });
  expect(list.find(token.slice(0, -1))).toBeUndefined();
  expect(list.size()).toBe(2);
});

it('the token list finds nothing before its first refresh, which reads all tokens', async () => {
  const { token } = await issueToken(pool, { locationId: 'club-1' });
  await pass();
  expect(list.find(token)).toBeUndefined();
  expect(await refound(token)).toBeDefined();
});

it('the token list does not read tokens that are revoked, expired or of another integration', async () => {
  const { tokenId } = await issueToken(pool, { locationId: 'club-1' });
  await revokeToken(pool, tokenId);
  await issueToken(pool, { locationId: 'club-1', expiresAt: new Date(Date.now() - 1) });
  await putIntegration('square');
  const { token } = await issueToken(pool, { locationId: 'club-1' });
  await putIntegration('standard');
  await list.load();
  expect(list.size()).toBe(0);
  expect(await refound(token)).toBeUndefined();
});

it('the token list does not find a revoked token after a refresh', async () => {
  const { token, tokenId } = await issueToken(pool, { locationId: 'club-1' });
  await pass();
  await list.load();
  await revokeToken(pool, tokenId);
  expect(list.find(token)).toBeDefined();
  expect(await refound(token)).toBeUndefined();
});

it('the token list does not find an expired token, even without a refresh', async () => {
  let now = new Date();
  list = listOf(pool, () => now);
  const { token } = await issueToken(pool, { locationId: 'club-1', expiresAt: new Date(now.getTime() + 60_000) });
  await list.load();
  now = new Date(now.getTime() + 59_999);
  expect(list.find(token)).toBeDefined();
  now = new Date(now.getTime() + 1);
  expect(list.find(token)).toBeUndefined();
});

it('a refresh of the token list finds a token that was issued after the load', async () => {
  await list.load();
  const { token } = await issueToken(pool, { locationId: 'club-1' });
  expect(await refound(token)).toBeDefined();
});

it('the next refresh reads a change that was not committed during the last refresh', async () => {
  const { token, tokenId } = await issueToken(pool, { locationId: 'club-1' });
  await pass();
  await list.load();
  const slow = await pool.connect();
  try {
    await slow.query('BEGIN');
    await slow.query('UPDATE webhook_tokens SET revoked_at = now() WHERE token_id = $1', [tokenId]);
    await list.refresh();
    await slow.query('COMMIT');
  } finally {
    slow.release();
  }
  expect(list.find(token)).toBeDefined();
  expect(await refound(token)).toBeUndefined();
});

it("the token list finds a token only while its location has the token's integration", async () => {
  const { token } = await issueToken(pool, { locationId: 'club-1' });
  await pass();
  await list.load();
  await putIntegration('square');
  expect(await refound(token)).toBeUndefined();
  await pass();
  await list.refresh();
  await putIntegration('standard');
  expect(await refound(token)).toMatchObject({ integration: 'standard' });
});

it('the token list forgets the tokens of a removed location with the next refresh', async () => {
  const { token } = await issueToken(pool, { locationId: 'club-1' });
  await list.load();
  await pool.query(`UPDATE locations SET paused_at = now() WHERE location_id = 'club-1'`);
  expect(await removeLocation(pool, 'club-1')).toEqual({ tokens: 1 });
  expect(list.find(token)).toBeDefined();
  expect(await refound(token)).toBeUndefined();
});

it('the token list forgets a token that was deleted by hand when the list reads all tokens, which it does once an hour', async () => {
  const removed = await issueToken(pool, { locationId: 'club-1' });
  await pool.query(`INSERT INTO locations (location_id, integration, settings) VALUES ('club-2', 'standard', '')`);
  const kept = await issueToken(pool, { locationId: 'club-2' });
  await list.load();
  await pool.query(`DELETE FROM locations WHERE location_id = 'club-1'`);
  expect(await refound(removed.token)).toBeDefined();
  later(HOUR_MS + 1);
  expect(await refound(removed.token)).toBeUndefined();
  expect(list.find(kept.token)).toBeDefined();
});

it('the token list finds nothing when the list is too old, until a refresh', async () => {
  const { token } = await issueToken(pool, { locationId: 'club-1' });
  await list.load();
  const began = performance.now();
  const clock = vi.spyOn(performance, 'now').mockReturnValue(began + AGE_S * 1_000 - 1_000);
  expect(list.find(token)).toBeDefined();
  clock.mockReturnValue(began + AGE_S * 1_000 + 1);
  expect(list.find(token)).toBeUndefined();
  expect(await refound(token)).toBeDefined();
});

it('the token list stays in use while Postgres is away, until the list is too old', async () => {
  const { token } = await issueToken(pool, { locationId: 'club-1' });
  let answers = Number.POSITIVE_INFINITY;
  list = listOf(through((ask) => (--answers < 0 ? Promise.reject(new Error('away')) : ask())));
  await list.load();
  const clock = vi.spyOn(performance, 'now');
  const began = performance.now();
  clock.mockReturnValue(began + (AGE_S * 1_000) / 2);
  for (const read of [list.refresh, list.load]) {
    // At the first question, and at the second.
    for (answers of [0, 1]) {
      await expect(read()).rejects.toThrow('away');
      expect(list.find(token)).toBeDefined();
    }
  }
  clock.mockReturnValue(began + AGE_S * 1_000 + 1);
  expect(list.find(token)).toBeUndefined();
});

it('a load and a refresh of the token list run one after the other, also after one of them has failed', async () => {
  let [under, most] = [0, 0];
  let isAway = true;
  list = listOf(
    through(async (ask) => {
      most = Math.max(most, ++under);
      const answer = await ask();
      under -= 1;
      if (isAway) throw new Error('away');
      return answer;
    }),
  );
  const failing = list.load();
  await expect(failing).rejects.toThrow('away');
  isAway = false;
  await Promise.all([list.load(), list.refresh(), list.refresh(), list.load()]);
  expect(most).toBe(1);
});

it('a load of the token list reads every page, and a refresh reads all tokens again if more than one page has changed', async () => {
  const token = (nth: number): string => `token-${nth}`;
  const issue = (from: number, to: number): Promise<unknown> =>
    pool.query(
      `INSERT INTO webhook_tokens (token_id, sha256, integration, location_id)
       SELECT gen_random_uuid(), sha256(('token-' || nth)::bytea), 'standard', 'club-1' FROM generate_series($1::int, $2) nth`,
      [from, to],
    );
  await issue(1, 1_000);
  await list.load();
  expect(list.size()).toBe(1_000);
  await issue(1_001, 2_100);
  await list.refresh();
  expect(list.size()).toBe(2_100);
  for (let nth = 1; nth <= 2_100; nth++) expect(list.find(token(nth))).toBeDefined();
  await putIntegration('square');
  await list.refresh();
  expect(list.size()).toBe(0);
});

it('a refresh of the token list reads only changes, and the use of a token is no change', async () => {
  await pool.query(
    `INSERT INTO locations (location_id, integration, settings)
     SELECT 'many-' || nth, 'standard', '' FROM generate_series(1, 3000) nth`,
  );
  await pool.query(
    `INSERT INTO webhook_tokens (token_id, sha256, integration, location_id)
     SELECT gen_random_uuid(), sha256(nth::text::bytea), 'standard', 'many-' || nth FROM generate_series(1, 3000) nth`,
  );
  const { tokenId } = await issueToken(pool, { locationId: 'club-1' });
  await pass();
  await pool.query('ANALYZE webhook_tokens, locations');
  let asked = pool;
  list = listOf(new Proxy(pool, { get: (_, name) => Reflect.get(asked, name) as unknown }));
  await list.load();
  const refresh = (): Promise<ReadPlans> =>
    readPlans(pool, (recording) => {
      asked = recording;
      return list.refresh();
    });
  const seen = recordLastSeen(pool);
  seen.observe({
    what: 'webhook',
    requestId: '',
    trace: undefined,
    milliseconds: 1,
    outcome: 'applied',
    integration: 'standard',
    locationId: 'club-1',
    tokenId,
    webhookId: null,
    serviceOrderIds: [],
    dropped: undefined,
  });
  await seen.write();
  expect(await refresh()).toMatchObject({ whole: [], reads: 0 });

  await revokeToken(pool, tokenId);
  await putIntegration('square');
  const { whole, reads } = await refresh();
  expect(whole).toEqual([]);
  expect(reads).toBeLessThan(10);
  expect(list.size()).toBe(3_000);
});
