-- Messages that tell a contact of a restaurant about orders. A row is written before its message is sent. No member data.
CREATE TABLE notice_messages (
  message_id uuid PRIMARY KEY,                  -- also in the message itself: a receiver drops a repeat by it
  location_id text COLLATE "C" NOT NULL REFERENCES locations ON DELETE CASCADE,
  step text COLLATE "C" NOT NULL,               -- the contact's way, its minutes and its address
  contact jsonb NOT NULL,                       -- as it was then
  created_at timestamptz NOT NULL DEFAULT now(),
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  lease_id uuid,
  lease_until timestamptz,
  failures integer NOT NULL DEFAULT 0,
  problem text,                                 -- of the last attempt, for the operator
  outcome text CHECK (outcome IN ('sent', 'gave_up', 'settled')), -- settled: nothing was left to tell
  ended_at timestamptz,
  links bytea[] NOT NULL DEFAULT '{}'           -- SHA-256 of the token of each attempt's link
);
CREATE INDEX notice_messages_open ON notice_messages (next_attempt_at) WHERE ended_at IS NULL;
CREATE INDEX notice_messages_of_step ON notice_messages (location_id, step, created_at);
CREATE INDEX notice_messages_of_link ON notice_messages USING gin (links) WITH (fastupdate = off);
CREATE INDEX notice_messages_given_up ON notice_messages (ended_at) WHERE outcome = 'gave_up';
CREATE INDEX notice_messages_by_time ON notice_messages (created_at);

-- What a contact of a restaurant is told about an order: at most one row for each trouble and step. No member data.
CREATE TABLE notices (
  notice_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  service_order_id text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL CHECK (reason IN ('late', 'failed', 'in_doubt', 'cancel_by_phone')),
  since timestamptz NOT NULL,                   -- when the trouble began: a later one of the same kind is told again
  step text COLLATE "C" NOT NULL,
  location_id text COLLATE "C" NOT NULL REFERENCES locations ON DELETE CASCADE,
  contact jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  message_id uuid REFERENCES notice_messages ON DELETE CASCADE, -- NULL until it is in a message
  answer text,
  answered_at timestamptz,
  UNIQUE (service_order_id, reason, since, step)
);
CREATE INDEX notices_of_message ON notices (message_id);
CREATE INDEX notices_to_gather ON notices (location_id, step) WHERE message_id IS NULL;
