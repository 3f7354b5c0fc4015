-- Identifies a row of a published table: see the next file, which locks the table.
CREATE UNIQUE INDEX IF NOT EXISTS status_events_by_id ON status_events (service_order_id, event_id);
