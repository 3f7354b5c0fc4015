-- Operators page through placements, newest first: all of them, a location's, or those that did not simply go well.
CREATE INDEX IF NOT EXISTS placements_by_signal ON placements (signalled_at, service_order_id);
CREATE INDEX IF NOT EXISTS placements_of_location ON placements (location_id, signalled_at, service_order_id);
CREATE INDEX IF NOT EXISTS placements_not_sent ON placements (state, signalled_at, service_order_id) WHERE state <> 'sent';

-- A live message is told once more to who follows an order, in the words that the topic has.
ALTER TABLE live_messages ADD COLUMN IF NOT EXISTS provider_order_id text;
