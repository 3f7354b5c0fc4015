import type { Pool } from 'pg';
import { readConfigOf, type Config } from '../config.ts';
import { examineRights } from './examine-rights.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning, failed } = reporterOf('database');

const OLDEST_VERSION = 15;
/** Days ahead for which partitions must exist. They are made a week ahead, every hour. */
const DAYS_AHEAD = 2;
/** Days that retention may be late. It runs every hour. */
const LATE_DAYS = 1;
const COUNTED = 1_000;

type Limits = Pick<Config, 'POOL_SIZE' | 'WEBHOOK_RETENTION_DAYS' | 'PII_RETENTION_DAYS'>;

/** Examines a database that can be reached and has our schema. */
export async function examineDatabase(env: NodeJS.ProcessEnv, pool: Pool): Promise<Finding[]> {
  const config = readConfigOf(env, 'POOL_SIZE', 'WEBHOOK_RETENTION_DAYS', 'PII_RETENTION_DAYS');
  const all = await Promise.all([
    server(pool),
    connections(pool, config),
    examineRights(pool),
    partitions(pool, config),
    erasing(pool, config),
  ]);
  return all.flat();
}

async function server(pool: Pool): Promise<Finding[]> {
  const { rows } = await pool.query<{
    version: number;
    encoding: string;
    fsync: string;
    pages: string;
    replica: boolean;
    readonly: string;
  }>(
    `SELECT current_setting('server_version_num')::int / 10000 AS version,
            current_setting('server_encoding') AS encoding, current_setting('fsync') AS fsync,
            current_setting('full_page_writes') AS pages, pg_is_in_recovery() AS replica,
            current_setting('default_transaction_read_only') AS readonly`,
  );
  const { version = 0, encoding = '', fsync, pages, replica, readonly } = rows[0] ?? {};
  return [
    version >= OLDEST_VERSION
      ? ok('version', `Postgres ${version}`)
      : failed('version', `Postgres ${version}`, `it takes Postgres ${OLDEST_VERSION} or newer`),
    encoding === 'UTF8'
      ? ok('encoding', encoding)
      : failed(
          'encoding',
          `${encoding}: orders and webhooks with other signs are refused`,
          'move to a database that was made with ENCODING UTF8',
        ),
    replica || readonly === 'on'
      ? failed('writing', 'it can only be read', 'let DATABASE_URL name the primary, and a role that may write')
      : fsync === 'off' || pages === 'off'
        ? failed('writing', 'fsync or full_page_writes is off: an answered webhook can be lost', 'turn both on')
        : ok('writing', 'commits are on disk before they are answered'),
  ];
}

async function connections(pool: Pool, { POOL_SIZE }: Limits): Promise<Finding> {
  const { rows } = await pool.query<{ most: number; used: number; ours: number }>(
    `SELECT least(
              current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                - coalesce(current_setting('reserved_connections', true)::int, 0),
              (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
              (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())) AS most,
            count(*)::int AS used, count(*) FILTER (WHERE application_name = 'expediter')::int AS ours
     -- What kind another role's is, only some may know; those of Postgres's own have no user or no database.
     FROM pg_stat_activity WHERE usesysid IS NOT NULL AND datid IS NOT NULL`,
  );
  const { most = 0, used = 0, ours = 0 } = rows[0] ?? {};
  const found = `${used} of ${most} in use, ${ours} of them ours; one process takes up to ${POOL_SIZE}`;
  // A rollout needs room for one more process.
  if (most - used >= POOL_SIZE) return ok('connections', found);
  return warning(
    'connections',
    found,
    'raise max_connections, or lower POOL_SIZE: a rollout needs room for one process more',
  );
}

async function partitions(pool: Pool, { WEBHOOK_RETENTION_DAYS }: Limits): Promise<Finding[]> {
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
          'expediter migrate makes them; a running service does every hour',
        ),
    late === 0
      ? ok('webhook retention', `nothing is older than ${WEBHOOK_RETENTION_DAYS} days`)
      : warning(
          'webhook retention',
          `days whose webhooks are older than ${WEBHOOK_RETENTION_DAYS} days: ${late}`,
          'see that a service runs, and look in its log for "dropping of partitions"',
        ),
  ];
}

async function erasing(pool: Pool, { PII_RETENTION_DAYS }: Limits): Promise<Finding> {
  const { rows } = await pool.query<{ late: number }>(
    `SELECT count(*)::int AS late FROM (
       SELECT FROM orders
       WHERE ended_at IS NOT NULL AND erased_at IS NULL AND ended_at < now() - make_interval(days => $1::int)
       LIMIT ${COUNTED}) AS o`,
    [PII_RETENTION_DAYS + LATE_DAYS],
  );
  const late = rows[0]?.late ?? 0;
  if (late === 0) return ok('member retention', `nothing is older than ${PII_RETENTION_DAYS} days`);
  return warning(
    'member retention',
    `orders that should have been erased: ${late === COUNTED ? `${late} or more` : late}`,
    'see that a service runs, and look in its log for "erasure of member data"',
  );
}
