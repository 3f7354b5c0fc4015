import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { createDatabase } from './create-database.ts';

/** A pool for the tests of one file, on a database that is created before the first of them. It ends after the last. */
export function testPool(options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool(options);
  beforeAll(async () => {
    pool.options.connectionString = await createDatabase();
  });
  afterAll(() => pool.end());
  return pool;
}
