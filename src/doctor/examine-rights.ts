import type { Pool } from 'pg';
import { FUNCTIONS, RIGHTS } from '../grant-rights.ts';
import { reporterOf, type Finding } from './finding.ts';

const { ok, warning, failed } = reporterOf('database');

/** So many are named. */
const NAMED = 5;

/** Compares what the role may do with what the service does. */
export async function examineRights(pool: Pool): Promise<Finding[]> {
  const rights = Object.entries(RIGHTS).flatMap(([table, all]) => all.map((right) => ({ table, right })));
  const { rows } = await pool.query<{ lacking: string[]; beyond: string[] }>(COMPARE, [
    rights.map(({ table }) => table),
    rights.map(({ right }) => right),
    FUNCTIONS,
  ]);
  const { lacking = [], beyond = [] } = rows[0] ?? {};
  return [
    lacking.length === 0
      ? ok('privileges', 'the role may do all that it has to')
      : failed(
          'privileges',
          `the role lacks ${some(lacking)}`,
          'expediter migrate, with OWNER_DATABASE_URL set, gives it what it needs',
        ),
    beyond.length === 0
      ? ok('least privilege', 'the role may do nothing else')
      : warning(
          'least privilege',
          `the role ${some(beyond)}: whoever gets hold of the service may, too`,
          'let another role own the tables, and be OWNER_DATABASE_URL of expediter migrate',
        ),
  ];
}

function some(all: readonly string[]): string {
  return `${all.slice(0, NAMED).join(', ')}${all.length > NAMED ? ' and more' : ''}`;
}

/**
 * A right on one column is written `UPDATE (reason)`. What the roles may that it is a member of, it may as well. Whoever
 * owns a table, or is a superuser, has every right on it.
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
        ('passes by row security', rows),
        ('reaches files of the server', server),
        ('may create in the schema ' || nspname, NOT is_owner AND has_schema_privilege(home.oid, 'CREATE'))
      ) AS has(power, is_so) WHERE is_so
      UNION ALL
      SELECT 'has ' || more || ' on ' || tables.name
      FROM home, (SELECT DISTINCT name FROM rights) AS tables,
           unnest('{INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS more
      WHERE NOT is_owner AND has_table_privilege(tables.name, more)
        AND NOT EXISTS (SELECT FROM rights WHERE rights.name = tables.name AND right_of = more)
    ) END AS beyond`;
