import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { ClientBase, Pool } from 'pg';
import { SETTINGS_ARRIVED } from './open-database.ts';

export const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url));
/** The table of applied migrations. */
export const TABLE = 'schema_migrations';
/** The end of a migration's name if it removes something that the previous version needs. */
const BREAKING = '.breaking';

/** The database does not fit this version of the service. */
export class WrongSchema extends Error {
  override readonly name = 'WrongSchema';
  /** The fault in half a sentence; `toDo` says how to fix it. */
  readonly found: string;
  readonly toDo: string;

  constructor(found: string, toDo: string) {
    super(`${found}. ${toDo}`);
    this.found = found;
    this.toDo = toDo;
  }
}

/**
 * @param pool of `openDatabase`
 * @throws WrongSchema that says what to do: a pooler drops the settings of our connections, one of our migrations is
 *   missing, or an unknown one removed something that this version needs. Any other unknown migration is the next
 *   version's, which may run at the same time.
 */
export async function checkSchema(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ arrived: boolean }>(`SELECT ${SETTINGS_ARRIVED} AS arrived`);
  // guard: settings-arrive
  if (rows[0]?.arrived !== true) {
    throw new WrongSchema(
      'The settings of our connections do not reach Postgres: a pooler drops them, and a webhook answered 200 could be lost',
      'Let DATABASE_URL name Postgres itself, without a pooler.',
    );
  }
  const ours = await migrationsIn(MIGRATIONS);
  const applied = await appliedMigrations(pool);
  const [missing, ...more] = ours.filter((name) => !applied.has(name));
  if (missing !== undefined) {
    const andMore = more.length > 0 ? ` and ${more.length} more` : '';
    throw new WrongSchema(`The schema lacks ${missing}${andMore}`, 'Run: expediter migrate');
  }
  const breaking = [...applied].filter((name) => name.endsWith(BREAKING) && !ours.includes(name));
  if (breaking.length > 0) {
    throw new WrongSchema(
      `The schema is too new for this version of the service (${breaking.join(', ')})`,
      'Deploy the version that made it.',
    );
  }
}

/** Names of the migrations in a folder, sorted. */
export async function migrationsIn(dir: string): Promise<string[]> {
  const files = await readdir(dir);
  return files
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
}

/** Names of the migrations that the database has. */
export async function appliedMigrations(database: Pool | ClientBase): Promise<Set<string>> {
  const tables = await database.query<{ there: boolean }>('SELECT to_regclass($1) IS NOT NULL AS there', [TABLE]);
  if (tables.rows[0]?.there !== true) return new Set();
  const { rows } = await database.query<{ name: string }>(`SELECT name FROM ${TABLE}`);
  return new Set(rows.map((row) => row.name));
}
