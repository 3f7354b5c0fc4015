-- Tokens that were removed with their location: a process that knows one by heart learns from here that it is gone. The
-- next removal deletes those of more than a day ago.
CREATE TABLE removed_tokens (
  sha256 bytea PRIMARY KEY,
  removed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX removed_tokens_by_time ON removed_tokens (removed_at);
