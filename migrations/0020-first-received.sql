-- When the webhook that a message tells of first came, where it was applied later: it was replayed, or waited for its POS
-- id. NULL for what was applied as it came.
ALTER TABLE outbox ADD COLUMN first_received_at timestamptz;
ALTER TABLE live_messages ADD COLUMN first_received_at timestamptz;
