-- A POS that is silent about an order is asked what it says of it. Such an answer is kept as webhooks are: its body is
-- the events that were read in it, and no sender, signature or header belongs to it.
ALTER TABLE webhooks ADD COLUMN asked boolean NOT NULL DEFAULT false;

-- When the POS was last asked about the order, how often since there was news of it, and how often it said more then than
-- its webhooks had.
ALTER TABLE placements
  ADD COLUMN asked_at timestamptz,
  ADD COLUMN asks smallint NOT NULL DEFAULT 0,
  ADD COLUMN missed smallint NOT NULL DEFAULT 0;

CREATE TABLE location_asks (
  location_id text COLLATE "C" PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  integration text NOT NULL,                    -- that missed_at is about
  next_ask_at timestamptz NOT NULL,             -- of any of its orders
  missed_at timestamptz                         -- when an answer last said more than the webhooks had
);
