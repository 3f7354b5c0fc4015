-- A busy kitchen takes orders, but each order takes longer. A time that has passed means that the kitchen is not busy.
ALTER TABLE locations
  ADD COLUMN pos_busy_until timestamptz,        -- as the POS reported
  ADD COLUMN pos_busy_minutes integer,          -- NULL: the POS does not say how many
  ADD COLUMN busy_until timestamptz,            -- as an operator said; infinity: until somebody ends it
  ADD COLUMN busy_minutes integer,
  ADD COLUMN busy_reason text,
  ADD COLUMN busy_by text;
CREATE INDEX locations_pos_busy ON locations (pos_busy_until) WHERE pos_busy_until IS NOT NULL;
CREATE INDEX locations_busy ON locations (busy_until) WHERE busy_until IS NOT NULL;
CREATE INDEX locations_paused ON locations (location_id) WHERE paused_at IS NOT NULL OR pos_paused_at IS NOT NULL;

-- Whether each kitchen takes orders, as the platform is told, and what is known of POS systems that may not answer. A
-- location without a row is open. A row with a sequence above `published_sequence` is its own outbox.
CREATE TABLE kitchens (
  location_id text COLLATE "C" PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'busy', 'closed', 'unreachable')),
  source text NOT NULL DEFAULT 'inferred' CHECK (source IN ('pos', 'operator', 'inferred')),
  since timestamptz NOT NULL,
  until timestamptz,                            -- NULL: unknown
  extra_minutes integer,
  -- Milliseconds since 1970, or one more than the last: it grows even if the location is created again.
  sequence bigint NOT NULL DEFAULT 0,
  published_sequence bigint NOT NULL DEFAULT 0,
  lease_id uuid,                                -- of the process that publishes it
  lease_until timestamptz,
  failures integer NOT NULL DEFAULT 0,          -- to publish it, since the last success
  probe_at timestamptz,                         -- the next check whether the POS answers; NULL: none
  probed_at timestamptz,                        -- the last check
  answered_at timestamptz,                      -- the last answer to a check
  unanswered_at timestamptz,                    -- the first check without an answer since the POS last answered
  unreachable_since timestamptz
);
CREATE INDEX kitchens_not_open ON kitchens (location_id) WHERE state <> 'open' OR unreachable_since IS NOT NULL;
CREATE INDEX kitchens_to_publish ON kitchens (sequence) WHERE published_sequence < sequence;
CREATE INDEX kitchens_to_probe ON kitchens (probe_at) WHERE probe_at IS NOT NULL;

-- The minutes that were sent to the POS with the order, because its kitchen was busy.
ALTER TABLE placement_attempts ADD COLUMN extra_minutes integer;
