import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { vacuumHolder } from '../../../src/core/postgres/vacuum-holder.ts';
import { createDatabase } from '../../../world/postgres/create-database.ts';
import { until } from '../../../world/processes/until.ts';

let url: string;
let pool: pg.Pool;
beforeAll(async () => {
  url = await createDatabase();
  pool = new pg.Pool({ connectionString: url, max: 2 });
});
afterAll(() => pool.end());

/** Other transactions go on meanwhile. */
const write = (): Promise<unknown> => pool.query('CREATE TABLE IF NOT EXISTS written AS SELECT 1; DROP TABLE written');

it.each<[string, string[]]>([
  ['an old snapshot', ['BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT FROM orders LIMIT 1']],
  ['a transaction that has written and is idle', ['BEGIN', `SELECT pg_current_xact_id()`]],
])('the reported age is the age of %s, and is 0 after its end', async (_, begin) => {
  const sample = vacuumHolder();
  await write();
  expect(await sample(pool)).toBe(0);
  const neighbour = new pg.Client(url);
  await neighbour.connect();
  try {
    for (const sql of begin) await neighbour.query(sql);
    await write();
    await until(async () => (await sample(pool)) > 0.2);
  } finally {
    await neighbour.end();
  }
  await write();
  expect(await sample(pool)).toBe(0);
});

it('the age counts from the first sample if Postgres does not show when the transaction began', async () => {
  const sample = vacuumHolder();
  const guest = new URL(url);
  guest.username = 'guest';
  await pool.query(`DROP ROLE IF EXISTS guest`);
  await pool.query(`CREATE ROLE guest LOGIN`);
  const neighbour = new pg.Client(url);
  const reader = new pg.Pool({ connectionString: guest.href, max: 1 });
  await neighbour.connect();
  try {
    await neighbour.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await neighbour.query('SELECT FROM orders LIMIT 1');
    await write();
    const sampleByOwner = vacuumHolder();
    await until(async () => (await sampleByOwner(pool)) > 0.2);
    expect(await sample(reader)).toBeLessThan(0.2);
    await until(async () => (await sample(reader)) > 0.2);
  } finally {
    await neighbour.end();
    await reader.end();
    await pool.query('DROP ROLE guest');
  }
});
