-- Finds the messages that both ways have taken. It is empty while there is only one way.
CREATE INDEX IF NOT EXISTS outbox_done ON outbox (applied_at) WHERE topic_done AND webhook_done;
