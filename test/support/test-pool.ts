import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { openDatabase } from '../../src/database/open-database.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';

/** A pool for the tests of one file, on a database that is created before the first of them. It ends after the last. */
export function testPool(options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool(options);
  onNewDatabase(pool);
  return pool;
}

/** The same as the service opens it, with the pool of its batch writers. */
export function servicePools(size = 5): ReturnType<typeof openDatabase> {
  const pools = openDatabase('postgres://set-before-the-first-test', size, () => {});
  onNewDatabase(pools.pool, pools.flushPool);
  return pools;
}

function onNewDatabase(...pools: readonly pg.Pool[]): void {
  beforeAll(async () => {
    const connectionString = await createDatabase();
    for (const { options } of pools) options.connectionString = connectionString;
  });
  afterAll(() => Promise.all(pools.map((pool) => pool.end())));
}
