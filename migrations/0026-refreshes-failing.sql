-- Finds the few orders that cannot be fetched again, for the board.
CREATE INDEX IF NOT EXISTS refreshes_failing ON refreshes (service_order_id) WHERE failing_since IS NOT NULL;
