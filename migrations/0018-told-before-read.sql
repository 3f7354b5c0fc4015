-- The last live message about an order that was never read: its order's messages go on above it. 0 for none.
ALTER TABLE placements ADD COLUMN told_sequence integer NOT NULL DEFAULT 0;
