-- What contradicted what we knew, newest first, for the board: few of all rows, so that the insert of any other pays
-- nothing for it.
CREATE INDEX IF NOT EXISTS status_events_conflicts ON status_events (recorded_at) WHERE conflict;
