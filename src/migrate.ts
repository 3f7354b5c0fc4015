import { readdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PG_MIGRATE_LOCK_ID, runner } from 'node-pg-migrate';
import pg, { type ClientBase, type Pool } from 'pg';
import { ensureDeliveryPartitions } from './core/delivery-partitions.ts';

const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url));
const TABLE = 'schema_migrations';
/** A migration that ends like this takes away what the version before it needs. */
const BREAKING = '.breaking';

/** A webhook has to be committed within 1.5 s, and whatever needs the table waits behind a migration that waits for it. */
const LOCK_TIMEOUT_MS = 1_000;
/** For which the service goes on before the next try. */
const LOCK_PAUSE_MS = 1_000;
const LOCK_PATIENCE_MS = 120_000;
const CONNECT_MS = 10_000;

const LOCK_NOT_AVAILABLE = '55P03';
const DEADLOCK_DETECTED = '40P01';

/** The database is not one that this version of the service can work with. */
export class WrongSchema extends Error {
  override readonly name = 'WrongSchema';
}

/**
 * Brings the schema up to this version. Whoever else tries at the same time waits, and finds nothing left to do. Each
 * migration is one transaction: one that fails leaves the schema as it was, and running it again goes on from there.
 * @param about.lockPatienceMs for how long one migration may try to lock what it changes
 * @returns what was done
 * @throws Error that names the migration that failed
 */
export async function migrate(
  databaseUrl: string,
  { dir = MIGRATIONS, lockPatienceMs = LOCK_PATIENCE_MS }: { dir?: string; lockPatienceMs?: number } = {},
): Promise<string[]> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: 'expediter migrate',
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
  });
  // A connection that dies is told by the query that needs it.
  client.on('error', () => {});
  await client.connect();
  const done: string[] = [];
  try {
    // A role's own limits are for the service; an index over millions of rows takes what it takes.
    await client.query('SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0');
    await client.query('SELECT pg_advisory_lock($1::bigint)', [PG_MIGRATE_LOCK_ID]);
    await client.query(`SET lock_timeout = ${LOCK_TIMEOUT_MS}`);
    const applied = await appliedMigrations(client);
    for (const name of await migrationsIn(dir)) {
      if (applied.has(name)) continue;
      await apply(client, { dir, name, lockPatienceMs });
      done.push(name);
    }
  } finally {
    // The lock goes with the connection.
    await client.end();
  }
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  pool.on('error', () => {});
  try {
    await ensureDeliveryPartitions(pool);
  } finally {
    await pool.end();
  }
  return done;
}

async function apply(
  client: ClientBase,
  { dir, name, lockPatienceMs }: { dir: string; name: string; lockPatienceMs: number },
): Promise<void> {
  const deadline = performance.now() + lockPatienceMs;
  for (;;) {
    try {
      await runner({
        dbClient: client,
        dir,
        ignorePattern: String.raw`(?!.*\.sql$).*`,
        file: name,
        migrationsTable: TABLE,
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
          `migration ${name} changed nothing: what it changes was locked for ${lockPatienceMs / 1_000} s. ` +
            'End the long transaction (see pg_stat_activity), then run it again',
          { cause: error },
        );
      }
      await sleep(LOCK_PAUSE_MS);
    }
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
    throw new WrongSchema(`The schema lacks ${missing.join(', ')}. Run: expediter migrate`);
  }
  const breaking = [...applied].filter((name) => name.endsWith(BREAKING) && !ours.includes(name));
  if (breaking.length > 0) {
    throw new WrongSchema(
      `The schema is too new for this version of the service (${breaking.join(', ')}). Deploy the version that made it.`,
    );
  }
}

/** Names, in their order. */
async function migrationsIn(dir: string): Promise<string[]> {
  const files = await readdir(dir);
  return files
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
}

async function appliedMigrations(database: Pool | ClientBase): Promise<Set<string>> {
  const tables = await database.query<{ there: boolean }>('SELECT to_regclass($1) IS NOT NULL AS there', [TABLE]);
  if (tables.rows[0]?.there !== true) return new Set();
  const { rows } = await database.query<{ name: string }>(`SELECT name FROM ${TABLE}`);
  return new Set(rows.map((row) => row.name));
}
