-- How much is stored of webhooks that were refused for an old token, like dropped_bytes and apart from it: who has a
-- revoked token takes nothing from what is kept for the others. One row a location, of the last day that had any.
CREATE TABLE refused_bytes (
  location_id text COLLATE "C" PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  day date NOT NULL,                            -- in UTC
  bytes bigint NOT NULL,                        -- taken from the quota, some for what is still to come
  not_stored bigint NOT NULL DEFAULT 0            -- webhooks that left no row in "webhooks"
) WITH (fillfactor = 70);
-- To count and to delete them. No other webhook is in it, so that the insert of any other does not pay for it.
CREATE INDEX IF NOT EXISTS webhooks_refused ON webhooks (location_id, received_at)
  WHERE cause ->> 'code' = 'old_token';
