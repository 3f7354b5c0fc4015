-- What the outbox held, once the topic has it: when a member could know. No member data.
CREATE TABLE live_messages (
  service_order_id text NOT NULL,
  sequence integer NOT NULL,
  rank smallint NOT NULL,
  applied_at timestamptz NOT NULL,
  published_at timestamptz NOT NULL DEFAULT now(),
  provider_order_id text,                       -- told once more to who follows an order, as the topic has it
  PRIMARY KEY (service_order_id, sequence)
);

-- When a webhook of a location was accepted last, and which token it came with; written every ten seconds, not with it.
CREATE TABLE location_heard (
  location_id text PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  integration text NOT NULL,
  heard_at timestamptz NOT NULL
);
ALTER TABLE webhook_tokens ADD COLUMN last_used_at timestamptz;
