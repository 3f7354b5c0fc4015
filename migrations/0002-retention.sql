-- What goes when: see the README. Member data of an order with erased_at is gone, and none is written for it again.
ALTER TABLE orders ADD COLUMN erased_at timestamptz;
CREATE INDEX orders_to_erase ON orders (ended_at) WHERE ended_at IS NOT NULL AND erased_at IS NULL;

-- What was told about orders that were never fetched, hence have no row of their own.
CREATE INDEX placements_to_erase ON placements (finished_at)
  WHERE finished_at IS NOT NULL AND location_id IS NULL AND problem IS NOT NULL;

-- They go before the partition does.
CREATE INDEX deliveries_of_no_order ON deliveries (received_at)
  WHERE outcome IN ('ignored', 'unmatched') AND reason IS NULL;
