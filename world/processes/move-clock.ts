/**
 * Moves the clock of a database, to test what takes days. `now()` and `clock_timestamp()` are found in our schema
 * before Postgres's own, so a session that names them without a schema, as the service does, gets the moved clock. Only
 * times are moved: rows are written as they would be on that day.
 */
import pg from 'pg';

/**
 * A default is bound to its function when it is made. Made again, it is bound to the one of `search_path`.
 * @param functions their names, as a pattern
 */
export const rebindDefaults = (functions: string): string => `
  DO $$
  DECLARE
    bound record;
  BEGIN
    FOR bound IN
      SELECT d.adrelid::regclass AS of_table, a.attname,
             regexp_replace(pg_get_expr(d.adbin, d.adrelid), 'pg_catalog\\.', '', 'g') AS value
      FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
      WHERE a.attgenerated = '' AND pg_get_expr(d.adbin, d.adrelid) ~ '(${functions})\\(\\)'
    LOOP
      EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', bound.of_table, bound.attname, bound.value);
    END LOOP;
  END $$`;

const PREPARE = `
  CREATE SCHEMA clock;
  CREATE TABLE clock.ahead (by interval NOT NULL);
  INSERT INTO clock.ahead VALUES ('0');
  CREATE FUNCTION clock.now() RETURNS timestamptz STABLE LANGUAGE sql AS
    'SELECT pg_catalog.now() + by FROM clock.ahead';
  CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql AS
    'SELECT pg_catalog.clock_timestamp() + by FROM clock.ahead';
  GRANT USAGE ON SCHEMA clock TO PUBLIC;
  GRANT SELECT ON clock.ahead TO PUBLIC;
  -- New tables still go to our schema.
  SET search_path = expediter, clock, pg_catalog;
  DO $$
  BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = expediter, clock, pg_catalog', current_database());
    -- A migration before this one set the role's, which would come first.
    EXECUTE format('ALTER ROLE %I IN DATABASE %I RESET search_path', current_user, current_database());
  END $$;
  ${rebindDefaults('now|clock_timestamp')}`;

/** Makes a database's clock movable for later connections, before or after its migration. */
export async function prepareClock(databaseUrl: string): Promise<void> {
  await run(databaseUrl, PREPARE);
}

/** Moves it ahead by seconds, on a connection of the owner. */
export const AHEAD = 'UPDATE clock.ahead SET by = by + make_interval(secs => $1::float8)';

/** Moves the clock of a prepared database ahead for all connections; processes follow within seconds. */
export async function moveClock(databaseUrl: string, about: { days: number }): Promise<void> {
  await run(databaseUrl, AHEAD, [about.days * 86_400]);
  // It looks nowhere else than it was told to when it was made.
  await run(databaseUrl, 'ALTER FUNCTION drop_webhook_partition SET search_path = clock, pg_catalog, pg_temp');
}

async function run(databaseUrl: string, sql: string, values?: unknown[]): Promise<void> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    await client.query(sql, values);
  } finally {
    await client.end();
  }
}
