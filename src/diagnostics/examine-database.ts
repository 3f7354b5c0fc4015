import type { Pool } from 'pg';
import { checkSchema, SCHEMA, SEQUENCES_BEHIND, WrongSchema } from '../database/check-schema.ts';
import { isLoopback } from '../core/egress/allowed-hosts.ts';
import { readConfigOf, type Config } from '../config/config.ts';
import { withClient } from '../core/postgres/transactions.ts';
import { explainDatabaseError } from '../database/explain-database-error.ts';
import { daysPast, REST_DAYS } from '../core/retention/past-orders.ts';
import { FUNCTIONS, RIGHTS } from '../database/grant-rights.ts';
import { failed, ok, skipped, warning, type Check } from './check.ts';

const OLDEST_VERSION = 15;
const ENCRYPT = 'write sslmode=verify-full into DATABASE_URL, and sslrootcert=/path/ca.pem if you have your own CA';
/** Partitions must exist for this many days ahead. Every hour they are made for a week ahead. */
const DAYS_AHEAD = 2;
/** Retention, which runs every hour, may be this many days late. */
const LATE_DAYS = 1;
const RAISE = 'run expediter migrate with OWNER_DATABASE_URL set, which raises them';
const IDENTIFY = 'run expediter migrate, or as the owner: ALTER TABLE <table> REPLICA IDENTITY FULL';
const END_PREPARED = 'run ROLLBACK PREPARED or COMMIT PREPARED with its name: see pg_prepared_xacts';
/** A prepared transaction that is older was left over. */
const PREPARED_FOR = '5 minutes';
const COUNTED = 1_000;
const NAMED = 5;
const orMore = (count: number): string => (count === COUNTED ? `${count} or more` : String(count));
const searchFor = (work: string): string => `make sure that a service runs, and search its log for "${work}"`;

/** Checks the connection and the schema. The caller may examine stored data only if nothing failed. */
export async function reachDatabase(pool: Pool, env: NodeJS.ProcessEnv): Promise<Check[]> {
  const reached = await reach(pool, env);
  return reached.some(({ state }) => state === 'failed') ? reached : [...reached, await examineSchema(pool)];
}

async function reach(pool: Pool, env: NodeJS.ProcessEnv): Promise<Check[]> {
  try {
    return await withClient(pool, async (client) => {
      const { rows } = await client.query<{ pid: number; version: string }>(
        `SELECT pg_backend_pid() AS pid, current_setting('server_version') AS version`,
      );
      const { pid, version = '' } = rows[0] ?? {};
      // These are properties of `pg`'s client. `host` and `ssl` come from the URL or PGSSLMODE. `processID` was sent at
      // the start of the connection. A pooler sends another id than Postgres has for the session.
      const { processID, host, ssl, connection } = client as unknown as Omit<Link, 'encrypted'> & {
        processID: number | null;
        connection: { stream: { encrypted?: boolean } };
      };
      const way = pid === processID ? 'directly' : 'through a connection pooler';
      return [
        ok('connection', `Postgres ${version.split(' ', 1)[0]}, ${way}`),
        judgeEncryption({ host, ssl, encrypted: connection.stream.encrypted === true }, env),
      ];
    });
  } catch (error) {
    return [failedBy('connection', error)];
  }
}

async function examineSchema(pool: Pool): Promise<Check> {
  return checkSchema(pool).then(
    () => ok('schema', 'is of this version'),
    (error: unknown) => failedBy('schema', error),
  );
}

function failedBy(check: string, error: unknown): Check {
  const { found, toDo } = error instanceof WrongSchema ? error : explainDatabaseError(error);
  return failed(check, found, toDo);
}

/** A connection to Postgres: the options of its client, and whether it is encrypted. */
type Link = {
  /** A host name, an IP address, or the folder of a Unix socket. */
  host: string;
  /** The option `ssl` of `pg`. With `true`, `pg` verifies the certificate. */
  ssl: boolean | { rejectUnauthorized?: boolean; checkServerIdentity?: unknown };
  encrypted: boolean;
};

/** Checks whether an attacker on the network could read the connection or impersonate Postgres. */
export function judgeEncryption({ host, ssl, encrypted }: Link, env: NodeJS.ProcessEnv): Check {
  if (host.startsWith('/')) return ok('encryption', 'by a socket of this machine');
  if (isLoopback(host)) return ok('encryption', 'on this machine');
  if (!encrypted)
    return warning(
      'encryption',
      `the connection to ${host} is not encrypted: anyone on the network can read and change the data`,
      ENCRYPT,
    );
  const options = typeof ssl === 'object' ? ssl : {};
  if (options.rejectUnauthorized === false || env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    return warning(
      'encryption',
      `the certificate of ${host} is not verified: any server can claim to be this host`,
      ENCRYPT,
    );
  }
  if (options.checkServerIdentity !== undefined) {
    return warning('encryption', `the host name in the certificate of ${host} is not checked`, ENCRYPT);
  }
  return ok('encryption', `TLS, and the identity of ${host} is verified`);
}

type Limits = Pick<Config, 'POOL_SIZE' | 'WEBHOOK_RETENTION_DAYS' | 'PII_RETENTION_DAYS' | 'HISTORY_DAYS'>;

/** Examines a database that can be reached and has our schema. */
export async function examineDatabase(env: NodeJS.ProcessEnv, pool: Pool): Promise<Check[]> {
  const config = readConfigOf(env, 'POOL_SIZE', 'WEBHOOK_RETENTION_DAYS', 'PII_RETENTION_DAYS', 'HISTORY_DAYS');
  const checks: Record<string, Promise<Check | Check[]>> = {
    server: server(pool),
    'left over': leftOver(pool),
    connections: connections(pool, config),
    privileges: examineRights(pool),
    partitions: partitions(pool, config),
    'member retention': erasing(pool, config),
    'past orders': pastOrders(pool, config),
  };
  // A check that cannot be made, for example because of a lock, hides no other.
  const all = await Promise.all(
    Object.entries(checks).map(([name, check]) => check.catch((error: unknown) => failedBy(name, error))),
  );
  return all.flat();
}

async function server(pool: Pool): Promise<Check[]> {
  const { rows } = await pool.query<{
    version: number;
    fsync: string;
    pages: string;
    replica: boolean;
    readonly: string;
  }>(
    `SELECT current_setting('server_version_num')::int / 10000 AS version,
            current_setting('fsync') AS fsync,
            current_setting('full_page_writes') AS pages, pg_is_in_recovery() AS replica,
            current_setting('default_transaction_read_only') AS readonly`,
  );
  const { version = 0, fsync, pages, replica, readonly } = rows[0] ?? {};
  return [
    version >= OLDEST_VERSION
      ? ok('version', `Postgres ${version}`)
      : failed('version', `Postgres ${version}`, `use Postgres ${OLDEST_VERSION} or newer`),
    replica || readonly === 'on'
      ? failed('writing', 'the database is read-only', 'set DATABASE_URL to the primary, with a role that may write')
      : fsync === 'off' || pages === 'off'
        ? failed('writing', 'fsync or full_page_writes is off: an answered webhook can be lost', 'turn both on')
        : ok('writing', 'commits are on disk before they are answered'),
  ];
}

/** What an upgrade of Postgres or a crashed client leaves behind. */
async function leftOver(pool: Pool): Promise<Check[]> {
  const { rows } = await pool.query<{ behind: boolean | null; published: string[]; prepared: string[] }>(
    `SELECT ${SEQUENCES_BEHIND} AS behind,
            ARRAY(SELECT DISTINCT tablename::text FROM pg_publication_tables p JOIN pg_class c ON c.relname = p.tablename
                  WHERE p.schemaname = '${SCHEMA}' AND c.relnamespace = '${SCHEMA}'::regnamespace
                    AND (c.relreplident = 'n' OR c.relreplident = 'd'
                         AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary))) AS published,
            ARRAY(SELECT quote_literal(gid) FROM pg_prepared_xacts
                  WHERE database = current_database() AND prepared < now() - interval '${PREPARED_FOR}') AS prepared`,
  );
  const { behind = null, published = [], prepared = [] } = rows[0] ?? {};
  return [
    behind === true
      ? failed('sequences', 'they are behind their tables, as after a logical upgrade: new rows collide', RAISE)
      : behind === null
        ? skipped('sequences', `the role may not read them: ${RAISE}`)
        : ok('sequences', 'are not behind their tables'),
    published.length > 0
      ? failed('publications', `Postgres refuses updates of published tables: ${some(published)}`, IDENTIFY)
      : ok('publications', 'stop no update'),
    prepared.length > 0
      ? warning('prepared transactions', `${some(prepared)}: their locks stay until somebody ends them`, END_PREPARED)
      : ok('prepared transactions', 'none is left over'),
  ];
}

async function connections(pool: Pool, { POOL_SIZE }: Limits): Promise<Check> {
  const { rows } = await pool.query<{ most: number; used: number; ours: number }>(
    `SELECT least(
              current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                - coalesce(current_setting('reserved_connections', true)::int, 0),
              (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
              (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())) AS most,
            count(*)::int AS used, count(*) FILTER (WHERE application_name = 'expediter')::int AS ours
     -- backend_type of other roles is hidden, so Postgres's own processes are recognized by a missing user or database.
     FROM pg_stat_activity WHERE usesysid IS NOT NULL AND datid IS NOT NULL`,
  );
  const { most = 0, used = 0, ours = 0 } = rows[0] ?? {};
  const found = `${used} of ${most} in use, ${ours} of them ours; one process takes up to ${POOL_SIZE}`;
  if (most - used >= POOL_SIZE) return ok('connections', found);
  return warning(
    'connections',
    found,
    'raise max_connections or lower POOL_SIZE, because a rollout needs the connections of one more process',
  );
}

async function partitions(pool: Pool, { WEBHOOK_RETENTION_DAYS }: Limits): Promise<Check[]> {
  const { rows } = await pool.query<{ today: boolean; ahead: number; late: number }>(
    `SELECT coalesce(bool_or(age = 0), false) AS today, count(*) FILTER (WHERE age < 0)::int AS ahead,
            count(*) FILTER (WHERE age > $1::int)::int AS late
     FROM (SELECT (now() AT TIME ZONE 'UTC')::date - to_date(right(c.relname, 8), 'YYYYMMDD') AS age
           FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
           WHERE i.inhparent = 'webhooks'::regclass AND c.relname ~ '^webhooks_\\d{8}$') AS days`,
    [WEBHOOK_RETENTION_DAYS + LATE_DAYS],
  );
  const { today = false, ahead = 0, late = 0 } = rows[0] ?? {};
  const made = `${today ? 'today' : 'not today'} and ${ahead} days ahead`;
  return [
    today && ahead >= DAYS_AHEAD
      ? ok('partitions', made)
      : (today ? warning : failed)(
          'partitions',
          made,
          'run expediter migrate, or start the service, which creates partitions every hour',
        ),
    late === 0
      ? ok('webhook retention', `nothing is older than ${WEBHOOK_RETENTION_DAYS} days`)
      : warning(
          'webhook retention',
          `days whose webhooks are older than ${WEBHOOK_RETENTION_DAYS} days: ${late}`,
          searchFor('dropping of partitions'),
        ),
  ];
}

async function erasing(pool: Pool, { PII_RETENTION_DAYS }: Limits): Promise<Check> {
  const { rows } = await pool.query<{ late: number }>(
    `SELECT count(*)::int AS late FROM (
       SELECT FROM orders
       WHERE ended_at IS NOT NULL AND erased_at IS NULL AND ended_at < now() - make_interval(days => $1::int)
       LIMIT ${COUNTED}) AS o`,
    [PII_RETENTION_DAYS + LATE_DAYS],
  );
  const late = rows[0]?.late ?? 0;
  if (late === 0) return ok('member retention', `nothing is older than ${PII_RETENTION_DAYS} days`);
  const found = `orders that should have been erased: ${orMore(late)}`;
  return warning('member retention', found, searchFor('erasure of member data'));
}

/** Reads the oldest current orders only. An order whose placement or cancellation is unfinished stays among them. */
async function pastOrders(pool: Pool, config: Limits): Promise<Check[]> {
  const { rows } = await pool.query<{ late: number; months: number }>(
    `SELECT (SELECT count(*)::int
             FROM (SELECT * FROM placements WHERE signalled_at < now() - make_interval(days => $1::int)
                   ORDER BY signalled_at LIMIT ${COUNTED}) AS p
             CROSS JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = p.service_order_id OFFSET 0) AS o
             WHERE p.finished_at < now() - make_interval(days => $1::int)
               AND o.ended_at < now() - make_interval(days => $1::int) AND o.erased_at < now() - make_interval(days => $2::int)
               AND NOT EXISTS (SELECT FROM cancellations c
                               WHERE c.service_order_id = p.service_order_id AND c.finished_at IS NULL)) AS late,
            (SELECT count(*)::int FROM pg_class
             WHERE relkind = 'r' AND pg_table_is_visible(oid) AND relname ~ '^past_orders_\\d{6}$'
               AND relname::text < 'past_orders_' || to_char((now() AT TIME ZONE 'UTC')::date - $3::int, 'YYYYMM')) AS months`,
    [config.PII_RETENTION_DAYS + REST_DAYS + LATE_DAYS, REST_DAYS + LATE_DAYS, daysPast(config) + LATE_DAYS],
  );
  const { late = 0, months = 0 } = rows[0] ?? {};
  return [
    late === 0
      ? ok('past orders', 'all were moved')
      : warning('past orders', `orders that should have been moved: ${orMore(late)}`, searchFor('move of past orders')),
    months === 0
      ? ok('history', `no month is older than ${config.HISTORY_DAYS} days`)
      : warning('history', `months that should have been dropped: ${months}`, searchFor('dropping of past orders')),
  ];
}

/** Compares the privileges of the service's database role with the privileges that the service needs. */
async function examineRights(pool: Pool): Promise<Check[]> {
  const rights = Object.entries(RIGHTS).flatMap(([table, all]) => all.map((right) => ({ table, right })));
  const { rows } = await pool.query<{ lacking: string[]; beyond: string[] }>(COMPARE, [
    rights.map(({ table }) => table),
    rights.map(({ right }) => right),
    FUNCTIONS,
  ]);
  const { lacking = [], beyond = [] } = rows[0] ?? {};
  return [
    lacking.length === 0
      ? ok('privileges', 'the role has all required rights')
      : failed(
          'privileges',
          `the role lacks ${some(lacking)}`,
          'run expediter migrate with OWNER_DATABASE_URL set, which grants these rights',
        ),
    beyond.length === 0
      ? ok('least privilege', 'the role has no other rights')
      : warning(
          'least privilege',
          `the role ${some(beyond)}: an attacker who controls the service may do this too`,
          'let another role own the tables, and set OWNER_DATABASE_URL to it for expediter migrate',
        ),
  ];
}

function some(all: readonly string[]): string {
  return `${all.slice(0, NAMED).join(', ')}${all.length > NAMED ? ' and more' : ''}`;
}

/**
 * SQL that finds missing and superfluous privileges. `UPDATE (reason)` is a privilege on one column. A role also has
 * the privileges of the roles that it is a member of. A superuser, and the owner of a table, have all privileges on it.
 */
const COMPARE = `
  WITH rights AS (
    SELECT name, right_of, split_part(right_of, ' ', 1) AS verb, substring(right_of FROM '\\((.*)\\)') AS of_column
    FROM unnest($1::text[], $2::text[]) AS given(name, right_of)
  ), home AS (
    SELECT n.oid, n.nspname, pg_has_role(c.relowner, 'MEMBER') AS is_owner
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = 'webhooks'::regclass
  ), powers AS (
    SELECT bool_or(rolsuper) AS superuser, bool_or(rolcreaterole) AS roles, bool_or(rolcreatedb) AS databases,
           bool_or(rolreplication) AS replication, bool_or(rolbypassrls) AS rows,
           bool_or(rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')) AS server
    FROM pg_roles WHERE pg_has_role(oid, 'MEMBER')
  )
  SELECT
    ARRAY(
      SELECT right_of || ' on ' || name FROM rights
      WHERE NOT CASE WHEN of_column IS NULL THEN has_table_privilege(name, verb)
                     ELSE has_column_privilege(name, of_column, verb) END
      UNION ALL
      SELECT 'EXECUTE on ' || name FROM unnest($3::text[]) AS name WHERE NOT has_function_privilege(name, 'EXECUTE')
    ) AS lacking,
    CASE WHEN (SELECT superuser FROM powers) THEN '{is a superuser}'::text[] ELSE ARRAY(
      SELECT power FROM powers, home, LATERAL (VALUES
        ('owns the tables', is_owner),
        ('may make roles', roles),
        ('may make databases', databases),
        ('may replicate', replication),
        ('bypasses row security', rows),
        ('can access files of the server', server),
        ('may create in the schema ' || nspname, NOT is_owner AND has_schema_privilege(home.oid, 'CREATE'))
      ) AS has(power, is_so) WHERE is_so
      UNION ALL
      SELECT 'has ' || more || ' on ' || tables.name
      FROM home, (SELECT DISTINCT name FROM rights) AS tables,
           unnest('{INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS more
      WHERE NOT is_owner AND has_table_privilege(tables.name, more)
        AND NOT EXISTS (SELECT FROM rights WHERE rights.name = tables.name AND right_of = more)
    ) END AS beyond`;
