-- A body with our token in it is sealed, whatever the outcome, and not only what dropped webhooks are verified with.
-- Few have either, so that the insert of any other does not pay for it.
CREATE INDEX IF NOT EXISTS webhooks_sealed ON webhooks (location_id, id) WHERE sealed IS NOT NULL;
