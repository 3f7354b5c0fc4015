-- The order of a webhook's events, for lists. NULL: it belongs to none of our orders, it was parked, or it is older than
-- this migration.
ALTER TABLE webhooks ADD COLUMN service_order_id text COLLATE "C";
