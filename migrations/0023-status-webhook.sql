-- A second way for live messages: a signed webhook to STATUS_WEBHOOK_URL, besides the topic. With both ways a message
-- stays in `outbox` until both have taken it, and each way has its own lease and attempts.
ALTER TABLE outbox
  ADD COLUMN topic_done boolean NOT NULL DEFAULT false,
  ADD COLUMN webhook_done boolean NOT NULL DEFAULT false,
  ADD COLUMN webhook_attempts integer NOT NULL DEFAULT 0,
  ADD COLUMN webhook_lease_until timestamptz,
  -- It was published before, and an operator has it sent once more. Nobody waits for it.
  ADD COLUMN resent boolean NOT NULL DEFAULT false;

-- The URL of STATUS_WEBHOOK_URL while it fails, or since it was stopped. Without a row, it works.
CREATE TABLE status_endpoints (
  endpoint text COLLATE "C" PRIMARY KEY,        -- SHA-256 of the URL, in base64: a URL may hold a token
  failing_since timestamptz NOT NULL DEFAULT now(),
  failed_at timestamptz NOT NULL DEFAULT now(),
  problem text NOT NULL,                        -- in our own words
  stopped_at timestamptz                        -- nothing is sent since then, until an operator resumes it
);
