-- How much is stored of webhooks that were dropped before their sender was proven: beyond DROPPED_QUOTA they are counted
-- and not kept. One row a location, of the last day that had any; written now and then, not with each.
CREATE TABLE dropped_bytes (
  location_id text COLLATE "C" PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  day date NOT NULL,                            -- in UTC
  bytes bigint NOT NULL,                        -- taken from the quota, some for what is still to come
  not_stored bigint NOT NULL DEFAULT 0            -- webhooks that left no row in "webhooks"
) WITH (fillfactor = 70);
