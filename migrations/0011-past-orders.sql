-- A process of the previous version does not read past orders. To it, such an order is unknown, and it would place the
-- order again after a late signal.

-- Orders that ended long ago, each with all its rows packed into one. One partition for each month in which orders were
-- moved here. No member data: it was erased before.
CREATE TABLE past_orders (
  month date NOT NULL,                          -- of the move: its first day, in UTC
  service_order_id text COLLATE "C" NOT NULL,
  location_id text COLLATE "C",                 -- NULL: the order was never read
  provider_order_id text COLLATE "C",
  signalled_at timestamptz NOT NULL,
  state text COLLATE "C" NOT NULL,              -- of its placement
  rank smallint,                                -- of its status; NULL: the order was never read
  last_notified_sequence integer NOT NULL,      -- as in `placements`
  packed bytea NOT NULL,                        -- zstd of JSON: the rows of each table, by the table's name
  PRIMARY KEY (service_order_id, month)
) PARTITION BY RANGE (month);
-- It is compressed already.
ALTER TABLE past_orders ALTER COLUMN packed SET STORAGE EXTERNAL;
-- Operators page through orders, newest first, and search them by their POS id.
CREATE INDEX past_orders_by_signal ON past_orders (signalled_at);
CREATE INDEX past_orders_of_location ON past_orders (location_id, signalled_at);
CREATE INDEX past_orders_not_sent ON past_orders (state, signalled_at) WHERE state <> 'sent';
CREATE INDEX past_orders_by_pos_id ON past_orders (provider_order_id) WHERE provider_order_id IS NOT NULL;

-- As for the days of webhooks: the service's role owns nothing.
CREATE FUNCTION expediter.ensure_past_orders_partition(month date) RETURNS void
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  child text := 'expediter.past_orders_' || to_char(month, 'YYYYMM');
BEGIN
  IF month NOT BETWEEN '2000-01-01' AND '9999-11-30' OR extract(day FROM month) <> 1 THEN
    RAISE EXCEPTION 'no month of past orders: %', month;
  END IF;
  IF EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'expediter.past_orders'::regclass AND inhrelid = to_regclass(child))
  THEN RETURN; END IF;
  EXECUTE format('CREATE TABLE %s (LIKE expediter.past_orders INCLUDING ALL)', child);
  EXECUTE format('ALTER TABLE expediter.past_orders ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)',
                 child, to_char(month, 'YYYY-MM-DD'), to_char(month + interval '1 month', 'YYYY-MM-DD'));
END $$;

-- Takes orders out of the tables of current orders, and returns all their rows as JSON, to be packed in the same
-- transaction. It takes only orders that ended `days` days ago and have no member data, and that nothing can change any
-- more. The service's role may delete no other order. An order that was never read has no row in `orders`.
CREATE FUNCTION expediter.take_past_orders(days integer, ids text[]) RETURNS TABLE (
  service_order_id text, location_id text, provider_order_id text, signalled_at timestamptz, state text, rank smallint,
  last_notified_sequence integer, rows text
) LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  locked text[];
  past text[];
BEGIN
  IF days < 3 THEN RAISE EXCEPTION 'an order is current for three days at least: %', days; END IF;
  -- A webhook that is being applied has the lock of its order. The order is taken another time.
  SELECT coalesce(array_agg(l.id), '{}') INTO locked
  FROM (SELECT o.service_order_id AS id FROM expediter.orders o
        WHERE o.service_order_id = ANY (ids) AND o.erased_at IS NOT NULL
          AND o.ended_at < now() - make_interval(days => days)
        FOR UPDATE SKIP LOCKED) AS l;
  SELECT array_agg(l.id) INTO past
  FROM (
    SELECT p.service_order_id AS id
    FROM expediter.placements p
    LEFT JOIN LATERAL (
      SELECT * FROM expediter.orders WHERE service_order_id = p.service_order_id OFFSET 0 -- forces index look-ups
    ) AS o ON true
    WHERE p.service_order_id = ANY (ids)
      AND p.finished_at < now() - make_interval(days => days)
      AND CASE WHEN o.service_order_id IS NULL THEN p.location_id IS NULL AND p.problem IS NULL
               ELSE o.service_order_id = ANY (locked) END
      AND NOT EXISTS (SELECT FROM expediter.cancellations c
                      WHERE c.service_order_id = p.service_order_id AND c.finished_at IS NULL)
      AND NOT EXISTS (SELECT FROM expediter.outbox x WHERE x.service_order_id = p.service_order_id)
      AND NOT EXISTS (SELECT FROM expediter.refreshes r WHERE r.service_order_id = p.service_order_id)
    FOR UPDATE OF p SKIP LOCKED
  ) AS l;
  DELETE FROM expediter.cases WHERE service_order_id = ANY (past);
  -- A separate statement sees all that was committed before the locks.
  RETURN QUERY
  WITH placements AS (DELETE FROM expediter.placements WHERE service_order_id = ANY (past) RETURNING *),
  orders AS (DELETE FROM expediter.orders WHERE service_order_id = ANY (past) RETURNING *),
  placement_attempts AS (DELETE FROM expediter.placement_attempts WHERE service_order_id = ANY (past) RETURNING *),
  provider_orders AS (DELETE FROM expediter.provider_orders WHERE service_order_id = ANY (past) RETURNING *),
  status_events AS (DELETE FROM expediter.status_events WHERE service_order_id = ANY (past) RETURNING *),
  live_messages AS (DELETE FROM expediter.live_messages WHERE service_order_id = ANY (past) RETURNING *),
  cancellations AS (DELETE FROM expediter.cancellations WHERE service_order_id = ANY (past) RETURNING *)
  SELECT p.service_order_id, p.location_id, coalesce(o.provider_order_id, p.provider_order_id), p.signalled_at, p.state,
         o.rank, p.last_notified_sequence, packed.rows
  FROM (
    SELECT id, json_object_agg(name, each)::text AS rows
    FROM (
      SELECT id, name, json_agg(one) AS each
      FROM (
          SELECT t.service_order_id AS id, 'placements' AS name, to_json(t) AS one FROM placements t
          UNION ALL SELECT t.service_order_id AS id, 'orders' AS name, to_json(t) AS one FROM orders t
          UNION ALL SELECT t.service_order_id AS id, 'placement_attempts' AS name, to_json(t) AS one FROM placement_attempts t
          UNION ALL SELECT t.service_order_id AS id, 'provider_orders' AS name, to_json(t) AS one FROM provider_orders t
          UNION ALL SELECT t.service_order_id AS id, 'status_events' AS name, to_json(t) AS one FROM status_events t
          UNION ALL SELECT t.service_order_id AS id, 'live_messages' AS name, to_json(t) AS one FROM live_messages t
          UNION ALL SELECT t.service_order_id AS id, 'cancellations' AS name, to_json(t) AS one FROM cancellations t
      ) AS one
      GROUP BY id, name
    ) AS of_table
    GROUP BY id
  ) AS packed
  JOIN placements p ON p.service_order_id = packed.id
  LEFT JOIN orders o ON o.service_order_id = packed.id;
END $$;

-- What is left of past orders whose month was dropped, so that a late signal does not place them again. A row has the
-- orders of a quarter whose ids have the same first 16 bits of SHA-256, 16 bytes each, in no sequence: the next 80 bits,
-- the number of the location in 3 bytes, the rank in 1 and the month of the move, counted from 2000-01, in 2. A drop
-- writes only the rows of its quarter again: with one row for all years, it would write 1.6 GB after 47 million orders.
CREATE TABLE tombstones (
  bucket integer NOT NULL,
  quarter date NOT NULL,                        -- of the move: its first day
  entries bytea NOT NULL,
  PRIMARY KEY (bucket, quarter)
);
ALTER TABLE tombstones ALTER COLUMN entries SET STORAGE EXTERNAL;
-- Numbers of locations in tombstones.
CREATE TABLE tombstone_locations (
  number integer GENERATED ALWAYS AS IDENTITY (MAXVALUE 16777215) PRIMARY KEY,
  location_id text COLLATE "C" NOT NULL UNIQUE
);

-- Drops a month of past orders and keeps a tombstone of each order that was ever read. An order that was never read has
-- none, because a new signal may place it. Only readers of past orders wait for this.
CREATE FUNCTION expediter.drop_past_orders_partition(month date) RETURNS boolean
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
SET enable_seqscan = on AS $$
DECLARE
  child regclass := to_regclass('expediter.past_orders_' || to_char(month, 'YYYYMM'));
BEGIN
  IF month NOT BETWEEN '2000-01-01' AND '9999-11-30' OR extract(day FROM month) <> 1 THEN
    RAISE EXCEPTION 'no month of past orders: %', month;
  END IF;
  -- A move that began before midnight may not be committed yet.
  IF month >= date_trunc('month', now() AT TIME ZONE 'UTC' - interval '1 day') THEN
    RAISE EXCEPTION 'orders may still be moved to this month: %', month;
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

-- Finds the tombstone of an order.
CREATE FUNCTION expediter.find_tombstone(id text) RETURNS TABLE (location_id text, rank smallint, month date)
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT l.location_id, get_byte(entries, at + 12)::int2,
         ('2000-01-01'::date + make_interval(months => get_byte(entries, at + 13) * 256 + get_byte(entries, at + 14)))::date
  FROM (SELECT sha256(convert_to(id, 'UTF8')) AS hash) AS h
  JOIN expediter.tombstones ON bucket = get_byte(hash, 0) * 256 + get_byte(hash, 1)
  CROSS JOIN LATERAL (SELECT position(substr(hash, 3, 10) IN entries)) AS p (at)
  JOIN expediter.tombstone_locations l ON l.number =
    get_byte(entries, at + 9) * 65536 + get_byte(entries, at + 10) * 256 + get_byte(entries, at + 11)
  WHERE at % 16 = 1
$$;

-- Ends the placement that a late signal about a past order made. Returns false if it is not a past order. An order that
-- was never read may be placed: it is no past order any more, and its live messages continue after the last one.
CREATE FUNCTION expediter.forget_past_order(id text, lease uuid) RETURNS boolean
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  was_read boolean;
  notified integer;
  hash bytea := sha256(convert_to(id, 'UTF8'));
BEGIN
  -- Every new order comes here, so the usual path has two look-ups by index and writes nothing.
  SELECT t.rank IS NOT NULL, t.last_notified_sequence INTO was_read, notified
  FROM expediter.past_orders t WHERE t.service_order_id = id;
  IF NOT FOUND THEN
    PERFORM FROM expediter.tombstones
    WHERE bucket = get_byte(hash, 0) * 256 + get_byte(hash, 1) AND position(substr(hash, 3, 10) IN entries) % 16 = 1;
    IF NOT FOUND THEN RETURN false; END IF;
    was_read := true;
  END IF;
  IF was_read THEN
    DELETE FROM expediter.placements WHERE service_order_id = id AND lease_id = lease AND location_id IS NULL;
    RETURN FOUND;
  END IF;
  DELETE FROM expediter.past_orders t WHERE t.service_order_id = id;
  UPDATE expediter.placements SET last_notified_sequence = greatest(last_notified_sequence, notified)
  WHERE service_order_id = id AND lease_id = lease;
  RETURN false;
END $$;

REVOKE ALL ON FUNCTION expediter.ensure_past_orders_partition(date), expediter.take_past_orders(integer, text[]),
  expediter.drop_past_orders_partition(date), expediter.find_tombstone(text), expediter.forget_past_order(text, uuid)
  FROM PUBLIC;
