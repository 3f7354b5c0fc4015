import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import { afterEach, beforeAll, describe, expect, it, vi, type MockInstance } from 'vitest';
import { makeToken } from '../../../src/core/domain/make-token.ts';
import { issueToken, revokeToken, tokenAuthenticator } from '../../../src/core/locations/webhook-tokens.ts';
import { removeLocation } from '../../../src/core/locations/remove-location.ts';
import { watchDatabase } from '../../../src/core/postgres/watch-database.ts';
import { tokenJudge } from '../../../src/http/judge-token.ts';
import { testPool } from '../../support/test-pool.ts';

const open = async (): Promise<never> => ({ provider: {}, settings: {} }) as never;

const pool = testPool({ max: 2 });
beforeAll(async () => {
  await pool.query(`INSERT INTO locations (location_id, integration, settings) VALUES ('club-1', 'standard', '')`);
});
afterEach(() => vi.restoreAllMocks());

/** Stops the clock. @returns a function that sets it to so many milliseconds later */
function stopClock(): (milliseconds: number) => void {
  const began = performance.now();
  const clock = vi.spyOn(performance, 'now').mockReturnValue(began);
  return (milliseconds) => void clock.mockReturnValue(began + milliseconds);
}

/** Waits until Postgres has answered all that it was asked. */
async function answered(asked: MockInstance): Promise<void> {
  await vi.waitFor(() => expect(asked.mock.settledResults.every(({ type }) => type !== 'incomplete')).toBe(true));
  await setImmediate();
}

it('a revoked token is refused after five seconds, although the clock of Postgres was set back', async () => {
  const { token, tokenId } = await issueToken(pool, { locationId: 'club-1' });
  let now = new Date();
  const judge = tokenAuthenticator(pool, open, () => now);
  expect(await judge(token)).toBeDefined();
  await revokeToken(pool, tokenId);
  // A server took over whose clock is ten minutes behind.
  now = new Date(now.getTime() - 600_000);
  const later = performance.now() + 5_001;
  vi.spyOn(performance, 'now').mockReturnValue(later);
  expect(await judge(token)).toMatchObject({ state: 'revoked' });
});

it('no token is issued for a location that is removed at the same moment: the error is `no_location`', async () => {
  await pool.query(`INSERT INTO locations (location_id, integration, settings) VALUES ('left', 'standard', '')`);
  const query = pool.query.bind(pool) as (text: string | pg.QueryConfig, values?: unknown[]) => Promise<pg.QueryResult>;
  vi.spyOn(pool, 'query').mockImplementation((async (text: string | pg.QueryConfig, values?: unknown[]) => {
    if (typeof text === 'string' && text.includes('INSERT INTO webhook_tokens'))
      await query(`DELETE FROM locations WHERE location_id = 'left'`);
    return query(text, values);
  }) as never);
  await expect(issueToken(pool, { locationId: 'left' })).rejects.toMatchObject({ cause: { code: 'no_location' } });
});

it('a token in use is checked again in the background, so that no webhook waits', async () => {
  const { token, tokenId } = await issueToken(pool, { locationId: 'club-1' });
  const setClock = stopClock();
  const judge = tokenAuthenticator(pool, open, () => new Date());
  expect(await judge(token)).toBeDefined();
  await revokeToken(pool, tokenId);
  setClock(3_001);
  expect(judge(token)).toMatchObject({ tokenId });
  await vi.waitFor(async () => expect(await judge(token)).toHaveProperty('state'));
});

it('webhooks of many busy locations cost Postgres only one query for changes every few seconds', async () => {
  const tokens = await Promise.all(Array.from({ length: 20 }, () => issueToken(pool, { locationId: 'club-1' })));
  await pool.query(`UPDATE webhook_tokens SET created_at = now() - interval '1 hour'`);
  await pool.query(`UPDATE locations SET updated_at = now() - interval '1 hour'`);
  const setClock = stopClock();
  const judge = tokenAuthenticator(pool, open, () => new Date());
  for (const { token } of tokens) await judge(token);
  const asked = vi.spyOn(pool, 'query');
  // Half a minute of webhooks from all of them.
  for (let s = 1; s <= 30; s += 1) {
    setClock(s * 1_000);
    for (const { token } of tokens) expect(judge(token), `after ${s} s`).not.toBeInstanceOf(Promise);
    await answered(asked);
  }
  expect(asked.mock.calls.length).toBeLessThan(2 * 15);
});

it.each([
  ['it is revoked', (tokenId: string) => revokeToken(pool, tokenId)],
  ['its location is stored again', () => pool.query(`UPDATE locations SET updated_at = now()`)],
])('a busy token is looked up again when %s', async (_what, change) => {
  const { token, tokenId } = await issueToken(pool, { locationId: 'club-1' });
  await pool.query(`UPDATE webhook_tokens SET created_at = now() - interval '1 hour' WHERE token_id = $1`, [tokenId]);
  const setClock = stopClock();
  const judge = tokenAuthenticator(pool, open, () => new Date());
  await judge(token);
  await change(tokenId);
  setClock(3_001);
  expect(judge(token)).not.toBeInstanceOf(Promise);
  await vi.waitFor(() => expect(judge(token)).toBeInstanceOf(Promise));
});

it('a busy token is refused after five seconds once its location is removed', async () => {
  await pool.query(
    `INSERT INTO locations (location_id, integration, settings, paused_at) VALUES ('gone', 'x', '', now())`,
  );
  const { token } = await issueToken(pool, { locationId: 'gone' });
  const setClock = stopClock();
  const judge = tokenAuthenticator(pool, open, () => new Date());
  await judge(token);
  await removeLocation(pool, 'gone');
  setClock(3_001);
  expect(judge(token)).not.toBeInstanceOf(Promise);
  await vi.waitFor(async () => expect(await judge(token)).toBeUndefined());
});

it('a token that was deleted by hand is refused after a minute, however busy it is', async () => {
  const { token, tokenId } = await issueToken(pool, { locationId: 'club-1' });
  const setClock = stopClock();
  const judge = tokenAuthenticator(pool, open, () => new Date());
  await judge(token);
  await pool.query('DELETE FROM webhook_tokens WHERE token_id = $1', [tokenId]);
  const asked = vi.spyOn(pool, 'query');
  for (let s = 3; s < 60; s += 3) {
    setClock(s * 1_000);
    void judge(token);
    await answered(asked);
  }
  setClock(60_000);
  expect(await judge(token)).toBeUndefined();
});

it('a source of invented tokens gets only a share of the waiting look-ups, so that tokens of other sources are found', async () => {
  const { token } = await issueToken(pool, { locationId: 'club-1' });
  const { token: known } = await issueToken(pool, { locationId: 'club-1' });
  const judge = tokenAuthenticator(pool, open, () => new Date());
  await judge(known, () => 'a vendor');
  // A look-up is under way, and all others wait for its end.
  const client = await Promise.all([pool.connect(), pool.connect()]);
  const invented = (): string => randomBytes(32).toString('base64url');
  const flood = Array.from({ length: 5_000 }, () => Promise.resolve(judge(invented(), () => 'a guesser')));
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_001);
  const ofVendor = judge(token, () => 'a vendor');
  const ofKnown = judge(known, () => 'a guesser');
  for (const each of client) each.release();
  const answers = await Promise.allSettled(flood);
  expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1_025);
  expect(await ofVendor).toMatchObject({ locationId: 'club-1' });
  expect(await ofKnown).toMatchObject({ locationId: 'club-1' });
});

describe('a token', () => {
  it('is recognised by its prefix and its checksum', async () => {
    const { token } = await issueToken(pool, { locationId: 'club-1' });
    expect(token).toMatch(/^exw_[\w-]{49}$/);
    const judge = tokenAuthenticator(pool, open, () => new Date());
    expect(await judge(token)).toMatchObject({ locationId: 'club-1' });
  });

  it('that was invented, mistyped or cut off is refused without a query', async () => {
    const { token } = await issueToken(pool, { locationId: 'club-1' });
    const asked = vi.spyOn(pool, 'query');
    const judge = tokenJudge(
      tokenAuthenticator(pool, open, () => new Date()),
      watchDatabase(pool),
      undefined,
    );
    const last = token.endsWith('A') ? 'B' : 'A';
    const inMiddle = token[20] === 'A' ? 'B' : 'A';
    for (const wrong of [
      `${token.slice(0, -1)}${last}`,
      token.slice(0, 20) + inMiddle + token.slice(21),
      token.slice(0, -1),
      `${token}A`,
      token.replace('exw_', 'exx_'),
      ` ${token}`,
      'x'.repeat(42),
      `exw_${'x'.repeat(49)}`,
      makeToken('exo_'),
      'wrong',
    ])
      expect(await judge(wrong, 1_000), wrong).toBeUndefined();
    expect(asked).not.toHaveBeenCalled();
  });

  it('stays valid in the old form without a prefix', async () => {
    const old = randomBytes(32).toString('base64url');
    await pool.query(
      `INSERT INTO webhook_tokens (token_id, sha256, integration, location_id) VALUES ($1, $2, 'standard', 'club-1')`,
      [randomUUID(), createHash('sha256').update(old).digest()],
    );
    const judge = tokenAuthenticator(pool, open, () => new Date());
    expect(await judge(old)).toMatchObject({ locationId: 'club-1' });
  });
});
