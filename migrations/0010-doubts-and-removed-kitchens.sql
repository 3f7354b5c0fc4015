-- When the present doubt about an order began: long after its signal, or again after a person said that the order was not
-- at the POS.
ALTER TABLE placements ADD COLUMN doubt_since timestamptz;
-- When the connection to the POS was last changed: what was known of its answers before does not count. A name or a
-- contact changes only `updated_at`. NULL: not since this column exists.
ALTER TABLE locations ADD COLUMN settings_changed_at timestamptz;

-- Kitchens of removed locations, which the platform is told are closed. Like `kitchens`, a row is its own outbox.
CREATE TABLE removed_kitchens (
  location_id text COLLATE "C" PRIMARY KEY,
  integration text NOT NULL,
  removed_at timestamptz NOT NULL DEFAULT now(),
  sequence bigint NOT NULL,
  published_sequence bigint NOT NULL DEFAULT 0,
  lease_id uuid,
  lease_until timestamptz,
  failures integer NOT NULL DEFAULT 0
);
CREATE INDEX removed_kitchens_to_publish ON removed_kitchens (sequence) WHERE published_sequence < sequence;
