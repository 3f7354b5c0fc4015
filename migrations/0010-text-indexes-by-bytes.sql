-- What an index holds compares byte by byte, whatever the database's collation. A collation of the operating system or of
-- ICU sorts in another way after some upgrade of these, and an index made before it then finds no row that is there: a
-- second order with the same id, a webhook that is nobody's. And en_US of glibc took 15 % of the webhooks a second.
-- Builds these indexes anew, no table: see the changelog for how long.
ALTER TABLE locations ALTER COLUMN location_id TYPE text COLLATE "C";
ALTER TABLE webhook_tokens ALTER COLUMN location_id TYPE text COLLATE "C";
ALTER TABLE location_heard ALTER COLUMN location_id TYPE text COLLATE "C";

ALTER TABLE placements
  ALTER COLUMN service_order_id TYPE text COLLATE "C",
  ALTER COLUMN location_id TYPE text COLLATE "C",
  ALTER COLUMN state TYPE text COLLATE "C";
ALTER TABLE placement_attempts ALTER COLUMN service_order_id TYPE text COLLATE "C";

ALTER TABLE orders
  ALTER COLUMN service_order_id TYPE text COLLATE "C",
  ALTER COLUMN location_id TYPE text COLLATE "C";
ALTER TABLE provider_orders
  ALTER COLUMN location_id TYPE text COLLATE "C",
  ALTER COLUMN integration TYPE text COLLATE "C",
  ALTER COLUMN provider_order_id TYPE text COLLATE "C",
  ALTER COLUMN service_order_id TYPE text COLLATE "C";
ALTER TABLE order_contents ALTER COLUMN service_order_id TYPE text COLLATE "C";
DROP INDEX order_contents_of_member;
CREATE INDEX order_contents_of_member ON order_contents (((contents #>> '{member,id}') COLLATE "C"));

ALTER TABLE deliveries ALTER COLUMN location_id TYPE text COLLATE "C";
ALTER TABLE status_events ALTER COLUMN service_order_id TYPE text COLLATE "C";
ALTER TABLE parked_events
  ALTER COLUMN location_id TYPE text COLLATE "C",
  ALTER COLUMN integration TYPE text COLLATE "C",
  ALTER COLUMN provider_order_id TYPE text COLLATE "C";

ALTER TABLE outbox ALTER COLUMN service_order_id TYPE text COLLATE "C";
ALTER TABLE live_messages ALTER COLUMN service_order_id TYPE text COLLATE "C";

ALTER TABLE traffic
  ALTER COLUMN location_id TYPE text COLLATE "C",
  ALTER COLUMN integration TYPE text COLLATE "C",
  ALTER COLUMN what TYPE text COLLATE "C",
  ALTER COLUMN outcome TYPE text COLLATE "C";
