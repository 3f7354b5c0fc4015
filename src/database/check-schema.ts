import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { ClientBase, Pool, QueryConfig } from 'pg';

export const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url));
/** The schema of our tables and functions. Our SQL does not name it, because it is in `search_path`. */
export const SCHEMA = 'expediter';
export const TABLE = 'schema_migrations';
/** The end of a migration's name if the migration removes something that the previous version needs. */
const BREAKING = '.breaking';
/** Time to make one connection. A busy Postgres takes seconds. */
export const CONNECT_MS = 10_000;

/**
 * How Postgres writes and reads values, and what a transaction sees. The names are spelled as Postgres stores them. A
 * database or role with `DateStyle = German`, for example, would write times that no client reads.
 */
export const VALUES = {
  DateStyle: 'ISO',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  bytea_output: 'hex',
  extra_float_digits: '1',
  standard_conforming_strings: 'on',
  default_transaction_isolation: 'read committed',
};

/**
 * The settings of our connections. Those of a role or a database could weaken the promise that an answered webhook is on
 * disk, so each connection requests ours. A pooler drops them, so `expediter migrate` gives them to the service's role too.
 */
export const SETTINGS = {
  ...VALUES,
  synchronous_commit: 'on',
  statement_timeout: '8s',
  lock_timeout: '4s',
  idle_in_transaction_session_timeout: '10s',
  // A plan made while a table was empty, as the outbox mostly is, would scan the whole table after it has filled. With
  // 100,000 messages in the outbox, a claim took 168 ms instead of 3 ms, until the next ANALYZE.
  enable_seqscan: 'off',
  // With such scans off, plans look so costly that Postgres 15 to 17 would compile each one.
  jit: 'off',
};

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
 * Checks that a new connection has the settings that it requested, or that its role has ours.
 * @param about.lock the `lock_timeout` that it requested
 * @returns true if it has its own. Through a pooler, its next transaction may run in another session
 * @throws WrongSchema if it has neither, because a pooler drops settings
 */
export async function requireSettings(client: ClientBase, about: { lock: string; withinMs: number }): Promise<boolean> {
  const { processID } = client as unknown as { processID: number | null };
  const { rows } = await client.query<{ has: boolean; own: boolean; role: string }>({
    text: `SELECT current_setting('synchronous_commit') = 'on' AND current_setting('enable_seqscan') = 'off'
                    AND current_setting('jit') = 'off' AND '0' NOT IN (
                      current_setting('statement_timeout'), current_setting('lock_timeout'),
                      current_setting('idle_in_transaction_session_timeout'))
                    AND current_setting('DateStyle') LIKE 'ISO%' AND current_setting('IntervalStyle') = 'postgres'
                    AND current_setting('bytea_output') = 'hex' AND current_setting('extra_float_digits')::int > 0
                    AND current_setting('standard_conforming_strings') = 'on'
                    AND current_setting('default_transaction_isolation') = 'read committed' AS has,
                  pg_backend_pid() = ${processID ?? 0}
                    AND current_setting('lock_timeout') = '${about.lock}' AS own,
                  quote_ident(session_user) AS role`,
    query_timeout: about.withinMs,
  } as QueryConfig);
  const { has, own = false, role = '' } = rows[0] ?? {};
  // guard: settings-arrive
  if (has !== true) {
    throw new WrongSchema(
      `A pooler drops the settings of our connections, and the role ${role} lacks them: a webhook answered 200 could be lost, or a time be misread`,
      'Run: expediter migrate, with OWNER_DATABASE_URL set. Then reconnect the pooler (in PgBouncer: RECONNECT). ' +
        'Or let DATABASE_URL name Postgres itself.',
    );
  }
  return own;
}

/**
 * Checks that the service can use the database. @param pool a pool that `openDatabase` opened
 * @throws WrongSchema if `requireSettings` does, if the role's `search_path` does not find the tables, if one of our
 *   migrations is missing, or if an unknown migration removed something that this version needs. Any other unknown
 *   migration is allowed: it is from the next version, which may run at the same time
 */
export async function checkSchema(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ finds: boolean; path: string; role: string; database: string }>(
    `SELECT current_schema() IS NOT DISTINCT FROM '${SCHEMA}' AS finds,
            current_setting('search_path') AS path, ${OF_SESSION}`,
  );
  const { finds, path = '', role = '', database = '' } = rows[0] ?? {};
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
      `Run: expediter migrate. Or in psql: ${setForRole(role, database, { search_path: SCHEMA })}`,
    );
  }
}

/** SQL that selects two quoted names: of the role that logged in, and of the database. */
export const OF_SESSION = 'quote_ident(session_user) AS role, quote_ident(current_database()) AS database';

/**
 * @param role a quoted name, like `database`
 * @returns SQL that gives settings to each new connection of the role. A pooler may drop the settings of a connection,
 *   but not those of a role
 */
export function setForRole(role: string, database: string, settings: Record<string, string>): string {
  const all = Object.entries(settings).map(
    ([name, value]) =>
      `ALTER ROLE ${role} IN DATABASE ${database} SET ${name} = ${/^[a-z]+$/.test(value) ? value : `'${value}'`}`,
  );
  return all.join('; ');
}

/** @returns what a client of `pg` needs to connect there and to request settings, after those that the URL requests */
export function connectionTo(url: string, settings: Record<string, string>) {
  // `options` in the URL would replace ours, so both are joined.
  const parsed = new URL(url);
  const theirs = parsed.searchParams.get('options') ?? '';
  parsed.searchParams.delete('options');
  const ours = Object.entries(settings).map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`);
  // Trimmed, because a pooler may read an empty word at either end as a setting.
  const options = [theirs, ...ours].join(' ').trim();
  return { connectionString: parsed.href, options, connectionTimeoutMillis: CONNECT_MS };
}

/**
 * SQL that is true if sequences are behind their tables, as after an upgrade by logical replication, which copies rows
 * and no sequences. That of the migrations tells it for all. NULL for a role that may not read it.
 */
export const SEQUENCES_BEHIND = `
  (SELECT CASE WHEN has_sequence_privilege('${SCHEMA}.${TABLE}_id_seq', 'SELECT')
               THEN coalesce(last_value, 0) < (SELECT max(id) FROM ${SCHEMA}.${TABLE}) END
   FROM pg_sequences WHERE schemaname = '${SCHEMA}' AND sequencename = '${TABLE}_id_seq')`;

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
