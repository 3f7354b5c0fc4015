-- When the present doubt about an order began: long after its signal, or again after the order was not at the POS.
ALTER TABLE placements ADD COLUMN doubt_since timestamptz;
-- When the connection to the POS was last changed: what was known of its answers before does not count. A name or a
-- contact changes only `updated_at`. NULL: not since the location was created.
ALTER TABLE locations ADD COLUMN settings_changed_at timestamptz;
