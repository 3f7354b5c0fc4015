-- When an operator said that the POS does not have the order. What it answered before no longer says that it may.
ALTER TABLE placements ADD COLUMN absent_at timestamptz;
