-- Postgres refuses updates of a published table whose rows nothing identifies. Change capture, and upgrades by logical
-- replication, publish all tables.
ALTER TABLE status_events REPLICA IDENTITY USING INDEX status_events_by_id;
-- The new index has the same columns.
DROP INDEX status_events_of_order;
-- These have few rows.
ALTER TABLE parked_sweep REPLICA IDENTITY FULL;
ALTER TABLE scorecard_scored REPLICA IDENTITY FULL;
ALTER TABLE cases REPLICA IDENTITY FULL;
