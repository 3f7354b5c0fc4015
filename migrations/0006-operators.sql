-- Operators page through placements, newest first: all of them, a location's, or those that did not simply go well.
CREATE INDEX IF NOT EXISTS placements_by_signal ON placements (signalled_at, service_order_id);
CREATE INDEX IF NOT EXISTS placements_of_location ON placements (location_id, signalled_at, service_order_id);
CREATE INDEX IF NOT EXISTS placements_not_sent ON placements (state, signalled_at, service_order_id) WHERE state <> 'sent';

-- Which orders were sent lately, and may have been received by nobody?
CREATE INDEX IF NOT EXISTS placements_sent ON placements (finished_at) WHERE state = 'sent';
