-- A replay is a delivery of its own, with the body and the headers of the webhook that it replays, unless it is dropped
-- as well: then that one has them.
ALTER TABLE deliveries
  ADD COLUMN replay_of uuid,                    -- the webhook itself, also where a replay was replayed
  ADD COLUMN first_received_at timestamptz;     -- when that came: the clock that signatures are judged by

-- Both hold few of all rows, so that the insert of any other pays for neither.
CREATE INDEX deliveries_replays ON deliveries (replay_of) WHERE replay_of IS NOT NULL;
CREATE INDEX deliveries_dropped ON deliveries (location_id, id) WHERE outcome = 'dropped';
