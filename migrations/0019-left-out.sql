-- What was left out of an order when it was read: codes and paths, no value.
ALTER TABLE orders ADD COLUMN left_out jsonb;
-- ISO 3166-1 alpha-2, for telephone numbers in national form; NULL where nobody has said.
ALTER TABLE locations ADD COLUMN country text;
