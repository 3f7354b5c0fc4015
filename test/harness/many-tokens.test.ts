import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tokenList, type TokenList } from '../../src/core/locations/token-list.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';

let client: pg.Client;
let pool: pg.Pool;
let flushPool: pg.Pool;
beforeAll(async () => {
  const url = await createDatabase();
  ({ pool, flushPool } = openDatabase(url, 5, () => {}));
  // Else each token would look for its location in a table that is taken for empty.
  client = new pg.Client({ connectionString: url, options: '-c enable_seqscan=off' });
  await client.connect();
});
afterAll(() => Promise.all([pool.end(), flushPool.end(), client.end()]));

/** One token a location, which is the dearest: nothing is shared. */
async function issue(from: number, to: number): Promise<void> {
  await client.query(
    `INSERT INTO locations (location_id, integration, settings)
     SELECT 'location-' || md5(nth::text), 'lightspeed-k', '' FROM generate_series($1::int, $2) nth`,
    [from, to],
  );
  await client.query(
    `INSERT INTO webhook_tokens (token_id, sha256, integration, location_id, expires_at)
     SELECT gen_random_uuid(), sha256(nth::text::bytea), 'lightspeed-k', 'location-' || md5(nth::text), '2100-01-01'
     FROM generate_series($1::int, $2) nth`,
    [from, to],
  );
  await client.query('ANALYZE webhook_tokens, locations');
}

/** @returns millions of bytes that remain after a garbage collection */
async function usedMb(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let nth = 0; nth < 4; nth++) {
    collect();
    await sleep(20);
  }
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1e6;
}

/** @returns the part of its processor time that the longest turn of the event loop took, 0 to 1: at most a little more */
async function longestTurn(work: () => Promise<void>): Promise<number> {
  let longest = 0;
  const begun = process.threadCpuUsage();
  const over = new AbortController();
  const watching = (async () => {
    while (!over.signal.aborted) {
      const before = process.threadCpuUsage();
      await sleep(1);
      const { user, system } = process.threadCpuUsage(before);
      longest = Math.max(longest, user + system);
    }
  })();
  await work().finally(() => over.abort());
  await watching;
  const { user, system } = process.threadCpuUsage(begun);
  return longest / (user + system);
}

const warnings: object[] = [];
let list: TokenList;

it('100,000 tokens take less than 40 MB, and block the event loop for at most an eighth of their loading', async () => {
  await issue(1, 100_000);
  await pool.query('SELECT 1');
  const before = await usedMb();
  list = tokenList(pool, { ageS: 3_600, now: () => new Date(), log: { warn: (about) => warnings.push(about) } });
  const first = await longestTurn(list.load);
  const loaded = await usedMb();
  const again = await longestTurn(list.load);
  const anew = await usedMb();
  await list.refresh();
  expect(list.size()).toBe(100_000);
  expect(loaded - before).toBeLessThan(40);
  expect(anew - before).toBeLessThan(40);
  expect(Math.max(first, again)).toBeLessThan(1 / 8);
  expect(warnings).toEqual([]);
}, 120_000);

it('only 500,000 tokens are kept in memory, and the log has the number of the others', async () => {
  await issue(100_001, 500_003);
  await list.load();
  expect(list.size()).toBe(500_000);
  expect(warnings).toEqual([{ listed: 500_000, leftOut: 3 }]);
}, 300_000);
