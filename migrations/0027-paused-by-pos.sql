-- A location that its POS has paused, such as a busy kitchen, with an end. Apart from paused_at, which is an operator's:
-- neither ends the other, and the version before, which reads paused_at alone, is not left with a pause that never ends.
ALTER TABLE locations ADD COLUMN pos_paused_at timestamptz;    -- since when; NULL if its POS has not paused it
ALTER TABLE locations ADD COLUMN pos_paused_until timestamptz; -- NULL exactly where pos_paused_at is
ALTER TABLE locations ADD COLUMN pos_said_at timestamptz;      -- the last word about it: an earlier one moves nothing
CREATE INDEX locations_pos_paused ON locations (pos_paused_until) WHERE pos_paused_until IS NOT NULL;
