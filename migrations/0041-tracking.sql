-- Where a member follows the courier: {as of when the POS said so, the link}, so that the newest of two is the greater one.
-- The time is written as 2027-01-31T18:00:00.000Z, which sorts as text. In no index: webhooks write it.
ALTER TABLE orders ADD COLUMN tracking text[] COLLATE "C";
ALTER TABLE parked_events ADD COLUMN tracking text[] COLLATE "C";
