-- The short code by which an order is called out. NULL for an order of a version before.
ALTER TABLE orders ADD COLUMN call_out_code text;

-- How many codes a location has given. The seed is drawn once, and mixes them: they do not tell how many there were.
CREATE TABLE call_outs (
  location_id text COLLATE "C" PRIMARY KEY,
  given integer NOT NULL DEFAULT 0,
  seed integer NOT NULL DEFAULT floor(random() * 2147483648)
) WITH (fillfactor = 70);
