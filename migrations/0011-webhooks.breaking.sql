-- A delivery is called a webhook, in a product that delivers food, and what was "heard" was seen. Names alone: no table
-- is rewritten.
ALTER TABLE deliveries RENAME TO webhooks;
-- The service knows a day's table by its name.
DO $$
DECLARE
  day text;
BEGIN
  FOR day IN
    SELECT substr(relname, length('deliveries_') + 1) FROM pg_class
    WHERE relname ~ '^deliveries_\d{8}$' AND relkind = 'r' AND pg_table_is_visible(oid)
  LOOP
    EXECUTE format('ALTER TABLE %I RENAME TO %I', 'deliveries_' || day, 'webhooks_' || day);
  END LOOP;
END $$;
ALTER INDEX deliveries_pkey RENAME TO webhooks_pkey;
ALTER INDEX deliveries_of_no_order RENAME TO webhooks_of_no_order;
ALTER INDEX deliveries_replays RENAME TO webhooks_replays;
ALTER INDEX deliveries_dropped RENAME TO webhooks_dropped;
ALTER TABLE status_events RENAME COLUMN delivery_id TO webhook_id;
ALTER TABLE parked_events RENAME COLUMN delivery_id TO webhook_id;
ALTER TABLE parked_events RENAME COLUMN delivery_day TO webhook_day;
ALTER TABLE location_heard RENAME TO location_last_seen;
ALTER TABLE location_last_seen RENAME COLUMN heard_at TO last_seen_at;
