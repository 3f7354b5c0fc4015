-- How an act ended is said of an act that is there: none could be written before its act. What has none is removed, since
-- it would stand as the end of a later act.
DELETE FROM audit_outcomes o WHERE NOT EXISTS (SELECT FROM audit a WHERE a.audit_id = o.audit_id);
ALTER TABLE audit_outcomes ADD CONSTRAINT audit_outcomes_audit_id_fkey
  FOREIGN KEY (audit_id) REFERENCES audit (audit_id) NOT VALID;

-- As in 0022, but that a day which WEBHOOK_RETENTION_DAYS may still keep is not dropped: its least is 2.
DO $do$
BEGIN
  EXECUTE replace($sql$
    CREATE OR REPLACE FUNCTION {schema}.drop_webhook_partition(day date) RETURNS boolean
    LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $body$
    DECLARE
      child regclass := to_regclass('{schema}.webhooks_' || to_char(day, 'YYYYMMDD'));
    BEGIN
      IF day NOT BETWEEN '2000-01-01' AND '9999-12-30' THEN RAISE EXCEPTION 'no day of webhooks: %', day; END IF;
      IF day >= (now() AT TIME ZONE 'UTC')::date - 2 THEN
        RAISE EXCEPTION 'a day of webhooks is kept for two days at least: %', day;
      END IF;
      IF child IS NULL THEN RETURN false; END IF;
      IF (SELECT relispartition FROM pg_class WHERE oid = child) THEN
        LOCK TABLE ONLY {schema}.webhooks IN ACCESS EXCLUSIVE MODE;
      END IF;
      EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', child);
      EXECUTE format('DROP TABLE %s', child);
      RETURN true;
    END $body$;
  $sql$, '{schema}', (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'webhooks'::regclass));
END $do$;
