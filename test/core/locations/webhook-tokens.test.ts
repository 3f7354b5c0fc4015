import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { issueToken, revokeToken, tokenAuthenticator } from '../../../src/core/locations/webhook-tokens.ts';
import { createDatabase } from '../../support/create-database.ts';

let pool: pg.Pool;
beforeAll(async () => {
  pool = new pg.Pool({ connectionString: await createDatabase(), max: 2 });
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => pool.end());

it('a revoked token opens nothing after five seconds, though the clock of Postgres went back meanwhile', async () => {
  await pool.query(`INSERT INTO locations (location_id, integration, settings) VALUES ('club-1', 'standard', '')`);
  const { token, tokenId } = await issueToken(pool, { locationId: 'club-1' });
  let now = new Date();
  const judge = tokenAuthenticator(
    pool,
    async () => ({ provider: {} as never, settings: {} }),
    () => now,
  );
  expect(await judge(token)).toBeDefined();
  await revokeToken(pool, tokenId);
  // A server took over whose clock is ten minutes behind.
  now = new Date(now.getTime() - 600_000);
  const later = performance.now() + 5_001;
  vi.spyOn(performance, 'now').mockReturnValue(later);
  expect(await judge(token)).toBeUndefined();
});
