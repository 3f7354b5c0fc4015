-- What is due, of whatever location, without a step through all locations that have an open order.
CREATE INDEX IF NOT EXISTS placements_due ON placements (next_attempt_at) WHERE finished_at IS NULL;
