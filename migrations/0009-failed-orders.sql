-- Finds orders that failed recently. In a file of its own, because it takes long on a large table.
CREATE INDEX IF NOT EXISTS placements_failed ON placements (finished_at) WHERE state = 'failed';
