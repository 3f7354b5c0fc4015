import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import type { Pool } from 'pg';
import pg from 'pg';
import { ensureDeliveryPartitions } from './core/delivery-partitions.ts';

const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url));
const TABLE = 'schema_migrations';

/** The database is not the one that this version of the service was written for. */
export class WrongSchema extends Error {
  override readonly name = 'WrongSchema';
}

/** Brings the schema up to this version, once, whoever else tries at the same time. @returns what was done */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const done = await runner({
    databaseUrl,
    dir: MIGRATIONS,
    migrationsTable: TABLE,
    direction: 'up',
    count: Number.POSITIVE_INFINITY,
    advisoryLockMode: 'wait',
    log: () => {},
  });
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  try {
    await ensureDeliveryPartitions(pool);
  } finally {
    await pool.end();
  }
  return done.map((migration) => migration.name);
}

/** @throws WrongSchema that names the command that mends it, unless the schema is exactly this version's */
export async function checkSchema(pool: Pool): Promise<void> {
  const ours = (await readdir(MIGRATIONS)).filter((file) => file.endsWith('.sql')).map((file) => file.slice(0, -4));
  const { rows: tables } = await pool.query<{ there: boolean }>('SELECT to_regclass($1) IS NOT NULL AS there', [TABLE]);
  const { rows } = tables[0]?.there
    ? await pool.query<{ name: string }>(`SELECT name FROM ${TABLE}`)
    : { rows: [] as { name: string }[] };
  const theirs = new Set(rows.map((row) => row.name));
  const missing = ours.filter((name) => !theirs.has(name));
  if (missing.length > 0) {
    throw new WrongSchema(`The schema lacks ${missing.join(', ')}. Run: expediter migrate`);
  }
  const unknown = [...theirs].filter((name) => !ours.includes(name));
  if (unknown.length > 0) {
    throw new WrongSchema(
      `The schema is newer than this version of the service (${unknown.join(', ')}). Deploy the version that made it.`,
    );
  }
}
