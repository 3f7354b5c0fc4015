-- For how many days the functions below keep rows, whatever the service's role asks for. Written by `expediter migrate`,
-- which has the variables of the service. Without a row, the minimum of the variable counts.
CREATE TABLE kept_days (
  what text COLLATE "C" PRIMARY KEY,            -- audit, webhooks or past_orders
  days integer NOT NULL CHECK (days >= 0)
);

-- As before, but the service's role cannot shorten the audit: if it asks for fewer days than are stored, those count.
CREATE OR REPLACE FUNCTION expediter.delete_old_audit(kept_days integer) RETURNS bigint
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  deleted bigint;
  kept integer := greatest(kept_days, (SELECT days FROM expediter.kept_days WHERE what = 'audit'));
BEGIN
  IF kept_days < 30 THEN RAISE EXCEPTION 'the audit is kept for 30 days at least: %', kept_days; END IF;
  WITH old AS (
    SELECT audit_id FROM expediter.audit WHERE at < now() - make_interval(days => kept) ORDER BY at LIMIT 10000
  ), ends AS (
    DELETE FROM expediter.audit_outcomes o USING old WHERE o.audit_id = old.audit_id
  ), gone AS (
    DELETE FROM expediter.audit a USING old WHERE a.audit_id = old.audit_id RETURNING 1
  )
  SELECT count(*) INTO deleted FROM gone;
  RETURN deleted;
END $$;

-- As before, with the stored days as the minimum.
CREATE OR REPLACE FUNCTION expediter.drop_webhook_partition(day date) RETURNS boolean
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  kept integer := greatest(2, (SELECT days FROM expediter.kept_days WHERE what = 'webhooks'));
  child regclass := to_regclass('expediter.webhooks_' || to_char(day, 'YYYYMMDD'));
BEGIN
  IF day NOT BETWEEN '2000-01-01' AND '9999-12-30' THEN RAISE EXCEPTION 'no day of webhooks: %', day; END IF;
  IF day >= (now() AT TIME ZONE 'UTC')::date - kept THEN
    RAISE EXCEPTION 'a day of webhooks is kept for % days at least (WEBHOOK_RETENTION_DAYS of expediter migrate): %', kept, day;
  END IF;
  IF child IS NULL THEN RETURN false; END IF;
  LOCK TABLE ONLY expediter.webhooks IN ACCESS EXCLUSIVE MODE;
  -- With the parent's lock held, it waits for nothing more.
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', child);
  EXECUTE format('DROP TABLE %s', child);
  RETURN true;
END $$;

-- As before, with the stored days as the minimum.
CREATE OR REPLACE FUNCTION expediter.drop_past_orders_partition(month date) RETURNS boolean
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
SET enable_seqscan = on AS $$
DECLARE
  kept integer := (SELECT days FROM expediter.kept_days WHERE what = 'past_orders');
  child regclass := to_regclass('expediter.past_orders_' || to_char(month, 'YYYYMM'));
BEGIN
  IF month NOT BETWEEN '2000-01-01' AND '9999-11-30' OR extract(day FROM month) <> 1 THEN
    RAISE EXCEPTION 'no month of past orders: %', month;
  END IF;
  -- A move that began before midnight may not be committed yet.
  IF month >= date_trunc('month', now() AT TIME ZONE 'UTC' - interval '1 day') THEN
    RAISE EXCEPTION 'orders may still be moved to this month: %', month;
  END IF;
  IF month >= date_trunc('month', (now() AT TIME ZONE 'UTC')::date - kept) THEN
    RAISE EXCEPTION 'a month of past orders is kept for % days at least (HISTORY_DAYS of expediter migrate): %', kept, month;
  END IF;
  IF child IS NULL THEN RETURN false; END IF;
  -- The archive has no rows of a detached table.
  IF NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'expediter.past_orders'::regclass AND inhrelid = child) THEN
    RAISE EXCEPTION '% is detached from past_orders: attach it again, or drop it by hand', child;
  END IF;
  -- Not ON CONFLICT: it would take a number for each location that is known already.
  EXECUTE format('INSERT INTO expediter.tombstone_locations (location_id)
                  SELECT DISTINCT location_id FROM %s AS o WHERE rank IS NOT NULL
                    AND NOT EXISTS (SELECT FROM expediter.tombstone_locations l WHERE l.location_id = o.location_id)',
                 child);
  EXECUTE format(
    'INSERT INTO expediter.tombstones AS t (bucket, quarter, entries)
     SELECT get_byte(hash, 0) * 256 + get_byte(hash, 1), $2,
            string_agg(substr(hash, 3, 10) || substr(int4send(number), 2) || substr(int2send(rank), 2) || $1, '''')
     FROM (SELECT sha256(convert_to(service_order_id, ''UTF8'')) AS hash, location_id, rank FROM %s
           WHERE rank IS NOT NULL) AS o JOIN expediter.tombstone_locations USING (location_id)
     GROUP BY 1
     ON CONFLICT (bucket, quarter) DO UPDATE SET entries = t.entries || excluded.entries', child)
  USING int2send(((extract(year FROM month) - 2000) * 12 + extract(month FROM month) - 1)::int2),
        date_trunc('quarter', month)::date;
  LOCK TABLE ONLY expediter.past_orders IN ACCESS EXCLUSIVE MODE;
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', child);
  EXECUTE format('DROP TABLE %s', child);
  RETURN true;
END $$;
