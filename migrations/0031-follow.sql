-- What the topic was given since a process last looked, for those who follow an order.
CREATE INDEX IF NOT EXISTS live_messages_by_time ON live_messages (published_at);
