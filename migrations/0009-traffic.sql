-- What went through in each minute of the last day, for charts; written every ten seconds, added to by every process. No
-- member data, and no id of an order. The page keeps room, so that what is added to in a row's minute stays HOT.
CREATE TABLE traffic (
  location_id text NOT NULL,                    -- '' of all of an integration's, those that cannot be told included
  minute timestamptz NOT NULL,
  integration text NOT NULL,
  what text NOT NULL,                           -- webhook, placement, live
  outcome text NOT NULL,
  count integer NOT NULL,
  latencies integer[],                          -- how many took how long, by LATENCY_BOUNDS; NULL where nothing took time
  PRIMARY KEY (location_id, minute, integration, what, outcome)
) WITH (fillfactor = 70);
CREATE INDEX traffic_by_minute ON traffic (minute);
