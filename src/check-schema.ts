import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { ClientBase, Pool } from 'pg';

export const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url));
/** Where the database says what it has. */
export const TABLE = 'schema_migrations';
/** A migration that ends like this takes away what the version before it needs. */
const BREAKING = '.breaking';

/** The database is not one that this version of the service can work with. */
export class WrongSchema extends Error {
  override readonly name = 'WrongSchema';
  /** The fault in half a sentence, and what to do about it. */
  readonly found: string;
  readonly toDo: string;

  constructor(found: string, toDo: string) {
    super(`${found}. ${toDo}`);
    this.found = found;
    this.toDo = toDo;
  }
}

/**
 * @throws WrongSchema that says what to do: a migration of ours is missing, or one that we do not know took something
 * away that this version needs. Any other that we do not know is the next version's, which may run beside this one.
 */
export async function checkSchema(pool: Pool): Promise<void> {
  const ours = await migrationsIn(MIGRATIONS);
  const applied = await appliedMigrations(pool);
  const missing = ours.filter((name) => !applied.has(name));
  if (missing.length > 0) {
    throw new WrongSchema(`The schema lacks ${missing.join(', ')}`, 'Run: expediter migrate');
  }
  const breaking = [...applied].filter((name) => name.endsWith(BREAKING) && !ours.includes(name));
  if (breaking.length > 0) {
    throw new WrongSchema(
      `The schema is too new for this version of the service (${breaking.join(', ')})`,
      'Deploy the version that made it.',
    );
  }
}

/** Names, in their order. */
export async function migrationsIn(dir: string): Promise<string[]> {
  const files = await readdir(dir);
  return files
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
}

/** Names of those that the database has. */
export async function appliedMigrations(database: Pool | ClientBase): Promise<Set<string>> {
  const tables = await database.query<{ there: boolean }>('SELECT to_regclass($1) IS NOT NULL AS there', [TABLE]);
  if (tables.rows[0]?.there !== true) return new Set();
  const { rows } = await database.query<{ name: string }>(`SELECT name FROM ${TABLE}`);
  return new Set(rows.map((row) => row.name));
}
