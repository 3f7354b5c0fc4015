import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { ClientBase, Pool } from 'pg';
import { SETTINGS_ARRIVED } from './open-database.ts';

export const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url));
/** The schema of our tables and functions. Our SQL does not name it, because it is in `search_path`. */
export const SCHEMA = 'expediter';
/** The table of applied migrations. */
export const TABLE = 'schema_migrations';
/** The end of a migration's name if the migration removes something that the previous version needs. */
const BREAKING = '.breaking';

/** The database does not fit this version of the service. */
export class WrongSchema extends Error {
  override readonly name = 'WrongSchema';
  /** The fault, as a clause. `toDo` says how to fix it. */
  readonly found: string;
  readonly toDo: string;

  constructor(found: string, toDo: string) {
    super(`${found}. ${toDo}`);
    this.found = found;
    this.toDo = toDo;
  }
}

/**
 * Checks that the service can use the database. @param pool a pool that `openDatabase` opened
 * @throws WrongSchema if a pooler drops the settings of our connections, if the role's `search_path` does not find the
 *   tables, if one of our migrations is missing, or if an unknown migration removed something that this version needs.
 *   Any other unknown migration is allowed: it is from the next version, which may run at the same time
 */
export async function checkSchema(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ arrived: boolean; finds: boolean; path: string; role: string; database: string }>(
    `SELECT ${SETTINGS_ARRIVED} AS arrived, current_schema() IS NOT DISTINCT FROM '${SCHEMA}' AS finds,
            current_setting('search_path') AS path, ${OF_SESSION}`,
  );
  const { arrived, finds, path = '', role = '', database = '' } = rows[0] ?? {};
  // guard: settings-arrive
  if (arrived !== true) {
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
  if (finds !== true) {
    throw new WrongSchema(
      `The role ${role} does not find its tables: they are in the schema ${SCHEMA}, and its search_path is ${path || 'empty'}`,
      `Run: expediter migrate. Or in psql: ${setSearchPath(role, database)}`,
    );
  }
}

/** SQL that selects two quoted names: of the role that logged in, and of the database. */
export const OF_SESSION = 'quote_ident(session_user) AS role, quote_ident(current_database()) AS database';

/**
 * @param role a quoted name, like `database`
 * @returns SQL that makes each new connection of the role find the tables. A pooler may drop the settings of a
 *   connection, but not those of a role
 */
export function setSearchPath(role: string, database: string): string {
  return `ALTER ROLE ${role} IN DATABASE ${database} SET search_path = ${SCHEMA}`;
}

/** Names of the migrations in a folder, sorted. */
export async function migrationsIn(dir: string): Promise<string[]> {
  const files = await readdir(dir);
  return files
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
}

export async function appliedMigrations(database: Pool | ClientBase): Promise<Set<string>> {
  const tables = await database.query<{ there: boolean }>('SELECT to_regclass($1) IS NOT NULL AS there', [
    `${SCHEMA}.${TABLE}`,
  ]);
  if (tables.rows[0]?.there !== true) return new Set();
  const { rows } = await database.query<{ name: string }>(`SELECT name FROM ${SCHEMA}.${TABLE}`);
  return new Set(rows.map((row) => row.name));
}
