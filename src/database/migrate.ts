import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PG_MIGRATE_LOCK_ID, runner } from 'node-pg-migrate';
import pg, { type ClientBase } from 'pg';
import {
  MIGRATIONS,
  OF_SESSION,
  SCHEMA,
  TABLE,
  appliedMigrations,
  connectionTo,
  migrationsIn,
  SEQUENCES_BEHIND,
  SETTINGS,
  setForRole,
  VALUES,
} from './check-schema.ts';
import { explainDatabaseError } from './explain-database-error.ts';
import { grantRights } from './grant-rights.ts';
import { createWebhookPartitions } from '../core/postgres/ensure-webhook-partitions.ts';

/** The longest wait for a lock. Webhooks queue behind a migration that waits, and must be committed within 1.5 s. */
const LOCK_TIMEOUT_MS = 1_000;
/** Pause before the next attempt. Webhooks are committed during the pause. */
const LOCK_PAUSE_MS = 1_000;
const LOCK_PATIENCE_MS = 120_000;
const TURN_POLL_MS = 200;

const LOCK_NOT_AVAILABLE = '55P03';
const DEADLOCK_DETECTED = '40P01';

/**
 * Migrates the schema to this version, and sets the `search_path` of the roles to it, and our settings for the service's.
 * A second runner waits, and then finds nothing left to do. Each migration is one transaction. A failed migration changes
 * nothing, and the next run begins with it. Indexes on existing tables are built before their migration, without
 * blocking writers.
 * @param databaseUrl the URL of the role that owns the tables or will own them
 * @param about.serviceUrl the URL of the service's role, which gets its rights; undefined if it is the owner itself
 * @param about.keptDays rows of `kept_days`, stored if there is a `serviceUrl`; undefined to leave them as they are
 * @param about.lockPatienceMs time for one migration to get its locks
 * @returns the applied migrations
 * @throws Error that says what to do about the connection, the roles, a failed migration, or an empty database in
 *   another encoding than UTF8
 */
export async function migrate(
  databaseUrl: string,
  about: {
    dir?: string;
    lockPatienceMs?: number;
    serviceUrl?: string | undefined;
    keptDays?: Record<string, number>;
  } = {},
): Promise<string[]> {
  const { dir = MIGRATIONS, lockPatienceMs = LOCK_PATIENCE_MS, serviceUrl, keptDays } = about;
  const client = await connect(databaseUrl);
  const done: string[] = [];
  try {
    await requireOwnSession(client);
    // The time limits of a role are meant for the service. Building an index over millions of rows may take longer.
    await client.query(NO_LIMITS);
    await waitForTurn(client);
    await client.query(`SET lock_timeout = ${LOCK_TIMEOUT_MS}`);
    const applied = await appliedMigrations(client).catch(async (error: unknown) => {
      // A role that may not look into the schema is told whose schema it is.
      await requireOwner(client);
      throw error;
    });
    if (applied.size > 0) await raiseSequences(client);
    const missing = (await migrationsIn(dir)).filter((name) => !applied.has(name));
    if (missing.length > 0) {
      await requireUtf8(client);
      await requireOwner(client);
      await createSchema(client);
    }
    await findSchema(client);
    for (const name of missing) {
      await apply(client, { dir, name, lockPatienceMs });
      done.push(name);
    }
    if (serviceUrl !== undefined) {
      // guard: days-of-owner
      if (keptDays !== undefined) await client.query(KEEP, [Object.keys(keptDays), Object.values(keptDays)]);
      await grantRights(client, serviceUrl);
      await setForService(client, serviceUrl);
    }
    // On this connection, because its role may be allowed no other.
    await client.query('BEGIN');
    await createWebhookPartitions(client);
    await client.query('COMMIT');
  } finally {
    // Closing the connection releases the advisory lock.
    await client.end();
  }
  return done;
}

/** `transaction_timeout` is new in Postgres 17. */
const NO_LIMITS = `
  SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0;
  SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout'`;

/** Sets sequences that are behind their tables. Otherwise reads none, because the table of status events is large. */
async function raiseSequences(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ behind: boolean }>(`SELECT ${SEQUENCES_BEHIND} AS behind`);
  if (rows[0]?.behind === true) await client.query(RAISE_SEQUENCES);
}

const RAISE_SEQUENCES = `
  DO $$ DECLARE each record; BEGIN
    FOR each IN SELECT format('%I.%I', '${SCHEMA}', s.relname) AS sequence, d.refobjid::regclass AS of_table, a.attname AS id
                FROM pg_class s
                JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = s.oid
                  AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
                JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
                WHERE s.relkind = 'S' AND s.relnamespace = '${SCHEMA}'::regnamespace
    LOOP
      EXECUTE format('SELECT setval(%1$L, max(%2$I)) FROM %3$s HAVING max(%2$I) >= (SELECT last_value FROM %1$s)',
                     each.sequence, each.id, each.of_table);
    END LOOP;
  END $$`;

const KEEP = `INSERT INTO kept_days (what, days) SELECT * FROM unnest($1::text[], $2::int[])
  ON CONFLICT (what) DO UPDATE SET days = excluded.days`;

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({
    ...connectionTo(url, VALUES),
    application_name: 'expediter migrate',
    keepAlive: true,
  });
  // Without this listener, an error between queries would end the process. The next query reports the error.
  client.on('error', () => {});
  await client.connect().catch((error: unknown) => {
    const { found, toDo } = explainDatabaseError(error);
    throw new Error(`${found}; ${toDo}`, { cause: error });
  });
  return client;
}

/**
 * Waits until no other runner migrates. It asks again and again: a statement that waits for the lock would have a
 * snapshot, and an index that the other runner builds waits for all older snapshots.
 */
async function waitForTurn(client: ClientBase): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ mine: boolean }>('SELECT pg_try_advisory_lock($1::bigint) AS mine', [
      PG_MIGRATE_LOCK_ID,
    ]);
    if (rows[0]?.mine === true) return;
    await sleep(TURN_POLL_MS);
  }
}

/** Refuses a pooler, because the lock and the settings of a migration must stay in one session. */
async function requireOwnSession(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  if (rows[0]?.pid === (client as unknown as { processID: number }).processID) return;
  throw new Error(
    'a migration needs a session of its own, and there is a connection pooler: let OWNER_DATABASE_URL name Postgres itself',
  );
}

/** `CREATE SCHEMA IF NOT EXISTS` needs the right to create a schema, even if the schema exists. */
async function createSchema(client: ClientBase): Promise<void> {
  const { rowCount } = await client.query('SELECT FROM pg_namespace WHERE nspname = $1', [SCHEMA]);
  if (rowCount === 0) await client.query(`CREATE SCHEMA ${SCHEMA}`);
}

/**
 * Makes the role of a connection look in our schema first, in this connection and all later ones. Every role may set
 * this for itself.
 */
async function findSchema(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ is: boolean; role: string; database: string }>(
    `SELECT split_part(current_setting('search_path'), ',', 1) = '${SCHEMA}' AS is, ${OF_SESSION}`,
  );
  const { is, role = '', database = '' } = rows[0] ?? {};
  if (is === true) return;
  const sql = setForRole(role, database, { search_path: SCHEMA });
  await client.query(sql).catch((error: Error) => {
    throw new Error(
      `the role ${role} cannot set its search_path: ${error.message}. Run this as an administrator, then migrate again: ${sql}`,
      { cause: error },
    );
  });
  await client.query(`SET search_path = ${SCHEMA}`);
}

/**
 * Sets `search_path` and our settings for the service's role. A role that may not set them for others leaves this to the
 * service's role itself, so `serviceUrl` need not lead to Postgres from here.
 */
async function setForService(owner: ClientBase, serviceUrl: string): Promise<void> {
  const { user = '' } = new pg.Client({ connectionString: serviceUrl });
  const { rows } = await owner.query<{ same: boolean; role: string; database: string; settings: string[] }>(
    SETTINGS_OF,
    [user],
  );
  const { same, role = '', database = '', settings = [] } = rows[0] ?? {};
  // The owner's own sessions, such as a person's, keep their time limits.
  if (same === true) return;
  const wanted = Object.entries({ search_path: SCHEMA, ...SETTINGS });
  const lacking = wanted.filter(
    ([name, value]) => !settings.some((each) => `${each},`.startsWith(`${name}=${value},`)),
  );
  if (lacking.length === 0) return;
  const sql = setForRole(role, database, Object.fromEntries(lacking));
  const refused = await owner.query(sql).then(
    () => undefined,
    (error: Error) => error,
  );
  if (refused === undefined) return;
  try {
    const service = await connect(serviceUrl);
    try {
      await service.query(sql);
    } finally {
      await service.end();
    }
  } catch (error) {
    throw new Error(
      `the role ${role} lacks settings. The role of OWNER_DATABASE_URL may not set them (${refused.message}), and ` +
        `neither could the role itself (${(error as Error).message}). Run this as an administrator, then migrate again: ${sql}`,
      { cause: error },
    );
  }
}

/** Settings of a role in a database go before those of the role, and these before those of the database. */
const SETTINGS_OF = `
  SELECT current_user = $1 AS same, quote_ident($1) AS role, quote_ident(current_database()) AS database, ARRAY(
    SELECT DISTINCT ON (split_part(setting, '=', 1)) setting
    FROM pg_db_role_setting, unnest(setconfig) AS setting
    WHERE setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = $1))
      AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
    ORDER BY split_part(setting, '=', 1), setrole = 0, setdatabase = 0) AS settings`;

/** Refuses encodings other than UTF8. They lack characters that members use, so orders and webhooks would fail. */
async function requireUtf8(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ encoding: string; name: string }>(
    `SELECT current_setting('server_encoding') AS encoding, quote_ident(current_database()) AS name`,
  );
  const { encoding, name } = rows[0] ?? {};
  if (encoding === 'UTF8') return;
  throw new Error(
    `the database ${name} is in ${encoding}, but Expediter needs UTF8: create it with ` +
      `CREATE DATABASE ${name} ENCODING 'UTF8' TEMPLATE template0`,
  );
}

/** Refuses to migrate as the service's role, which owns nothing. This check comes before any change. */
async function requireOwner(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ may: boolean; role: string; owner: string | null }>(
    `SELECT quote_ident(current_user) AS role,
            (SELECT quote_ident(rolname) FROM pg_roles WHERE oid = coalesce(c.relowner, n.nspowner)) AS owner,
            coalesce(pg_has_role(c.relowner, 'USAGE'), has_schema_privilege(n.oid, 'CREATE'),
                     has_database_privilege(current_database(), 'CREATE')) AS may
     FROM (SELECT) AS nothing
     -- Not by to_regclass, which fails for a role that may not look into the schema.
     LEFT JOIN pg_namespace n ON n.nspname = $1
     LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = $2`,
    [SCHEMA, TABLE],
  );
  const { may, role, owner } = rows[0] ?? {};
  if (may === true) return;
  const whose = owner === undefined || owner === null ? '' : ` (${owner})`;
  throw new Error(
    `the role ${role} may not migrate: let OWNER_DATABASE_URL name the role that owns the schema ${SCHEMA}${whose}, or that ` +
      'may create it, such as the owner of the database',
  );
}

async function apply(
  client: ClientBase,
  { dir, name, lockPatienceMs }: { dir: string; name: string; lockPatienceMs: number },
): Promise<void> {
  const deadline = performance.now() + lockPatienceMs;
  for (;;) {
    try {
      await buildIndexes(client, await readFile(join(dir, `${name}.sql`), 'utf8'), lockPatienceMs);
      await runner({
        dbClient: client,
        dir,
        ignorePattern: String.raw`(?!.*\.sql$).*`,
        file: name,
        migrationsTable: TABLE,
        migrationsSchema: SCHEMA,
        direction: 'up',
        singleTransaction: true,
        noLock: true,
        log: () => {},
      });
      return;
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      const isLocked = code === LOCK_NOT_AVAILABLE || code === DEADLOCK_DETECTED;
      if (!isLocked) throw new Error(`migration ${name} failed and changed nothing: ${message}`, { cause: error });
      if (performance.now() > deadline) {
        throw new Error(
          `migration ${name} changed nothing: its tables were locked for ${lockPatienceMs / 1_000} s. ` +
            `${await blocker(client)}, then run the migration again`,
          { cause: error },
        );
      }
      await sleep(LOCK_PAUSE_MS);
    }
  }
}

/** Says what holds locks. A prepared transaction holds them without a session, until somebody ends it. */
async function blocker(client: ClientBase): Promise<string> {
  const { rows } = await client.query<{ gid: string }>(
    'SELECT quote_literal(gid) AS gid FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared LIMIT 1',
  );
  const [{ gid } = {}] = rows;
  if (gid === undefined) return 'End the long transaction (see pg_stat_activity)';
  return `End the prepared transaction: ROLLBACK PREPARED ${gid}, or COMMIT PREPARED (see pg_prepared_xacts)`;
}

/** An index of a migration. Its name and its table are captured. */
const INDEX = /\bCREATE (?:UNIQUE )?INDEX IF NOT EXISTS (\w+) ON (\w+) [^;]+/g;

/**
 * Builds the indexes of a migration on tables that exist. A build of minutes blocks no writer, because it is outside the
 * migration's transaction. The migration then finds the indexes. A build that was interrupted begins again.
 */
async function buildIndexes(client: ClientBase, migration: string, lockPatienceMs: number): Promise<void> {
  const sql = migration.replaceAll(/--[^\n]*/g, '');
  for (const [statement, index, table] of sql.matchAll(INDEX)) {
    // Postgres cannot build the index of a partitioned table in this way.
    const { rowCount } = await client.query(`SELECT FROM pg_class WHERE oid = to_regclass($1) AND relkind = 'r'`, [
      table,
    ]);
    if (rowCount === 0) continue;
    // It waits for older transactions, and nobody waits behind it.
    await client.query(`SET lock_timeout = ${lockPatienceMs}`);
    const { rowCount: broken } = await client.query(
      'SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid',
      [index],
    );
    if (broken !== 0) await client.query(`DROP INDEX CONCURRENTLY ${index}`);
    // guard: concurrent-index
    await client.query(statement.replace(' INDEX', ' INDEX CONCURRENTLY'));
    await client.query(`SET lock_timeout = ${LOCK_TIMEOUT_MS}`);
  }
}
