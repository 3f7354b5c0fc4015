-- The service's role owns nothing. What only an owner may do to a day of webhooks, it asks for by these two, which run as
-- whoever migrates. Their own search_path finds no object of a caller, and nobody may call them but by a grant.
DO $do$
BEGIN
  EXECUTE replace($sql$
    CREATE FUNCTION {schema}.ensure_webhook_partition(day date) RETURNS void
    LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
    DECLARE
      child text := '{schema}.webhooks_' || to_char(day, 'YYYYMMDD');
    BEGIN
      IF day NOT BETWEEN '2000-01-01' AND '9999-12-30' THEN RAISE EXCEPTION 'no day of webhooks: %', day; END IF;
      IF EXISTS (SELECT FROM pg_inherits WHERE inhparent = '{schema}.webhooks'::regclass AND inhrelid = to_regclass(child))
      THEN RETURN; END IF;
      -- An existing table is a day that was detached and not dropped. It becomes a partition again, with its rows. Made
      -- apart and then attached, it blocks no webhook; CREATE TABLE PARTITION OF would.
      EXECUTE format('CREATE TABLE IF NOT EXISTS %s (LIKE {schema}.webhooks INCLUDING ALL)', child);
      EXECUTE format('ALTER TABLE {schema}.webhooks ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)',
                     child, to_char(day, 'YYYY-MM-DD'), to_char(day + 1, 'YYYY-MM-DD'));
    END $body$;

    -- Webhooks queue behind who waits for this lock: so it waits for less than they do, and a later round tries again.
    -- Once it is there, nothing is waited for.
    CREATE FUNCTION {schema}.drop_webhook_partition(day date) RETURNS boolean
    LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $body$
    DECLARE
      child regclass := to_regclass('{schema}.webhooks_' || to_char(day, 'YYYYMMDD'));
    BEGIN
      IF day NOT BETWEEN '2000-01-01' AND '9999-12-30' THEN RAISE EXCEPTION 'no day of webhooks: %', day; END IF;
      IF child IS NULL THEN RETURN false; END IF;
      IF (SELECT relispartition FROM pg_class WHERE oid = child) THEN
        LOCK TABLE ONLY {schema}.webhooks IN ACCESS EXCLUSIVE MODE;
      END IF;
      EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', child);
      EXECUTE format('DROP TABLE %s', child);
      RETURN true;
    END $body$;

    REVOKE ALL ON FUNCTION {schema}.ensure_webhook_partition(date), {schema}.drop_webhook_partition(date) FROM PUBLIC;
  $sql$, '{schema}', (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'webhooks'::regclass));
END $do$;
