-- What has changed since a process last read the list of valid tokens, which it judges by while Postgres is away. What a
-- token's use changes is in neither index.
CREATE INDEX webhook_tokens_changed ON webhook_tokens (greatest(created_at, revoked_at));
CREATE INDEX locations_changed ON locations (updated_at);
