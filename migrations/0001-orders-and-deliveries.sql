-- Words: see the README. Member data lives in order_contents, in the bodies of deliveries and in reasons; nowhere else.

CREATE TABLE locations (
  location_id text PRIMARY KEY,
  integration text NOT NULL,
  settings text NOT NULL,                       -- a JWE under SETTINGS_KEY
  paused_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE webhook_tokens (
  token_id uuid PRIMARY KEY,
  sha256 bytea NOT NULL UNIQUE,                 -- the token itself is printed once and kept nowhere
  integration text NOT NULL,
  location_id text NOT NULL REFERENCES locations ON DELETE CASCADE,
  label text,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz
);
CREATE INDEX webhook_tokens_of_location ON webhook_tokens (location_id);

-- The queue of the forward journey: the row is the job.
CREATE TABLE placements (
  service_order_id text PRIMARY KEY,
  location_id text,                             -- unknown until the first refetch
  state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'held', 'in_doubt', 'sent', 'failed')),
  signalled_at timestamptz NOT NULL DEFAULT now(),
  deadline_at timestamptz NOT NULL,
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  lease_id uuid,
  lease_until timestamptz,
  attempts integer NOT NULL DEFAULT 0,
  failures integer NOT NULL DEFAULT 0,          -- since the last success; drives the back-off
  requested_at timestamptz,                     -- the last request to the POS began
  request_ended_at timestamptz,                 -- and ended, as far as we know
  provider_order_id text,
  problem text,                                 -- why it waits, is held, is in doubt or failed; for the operator
  finished_at timestamptz
);
-- The claim steps from location to location (NULL is one of them: not fetched yet) and takes the oldest of each.
CREATE INDEX placements_open ON placements (coalesce(location_id, ''), next_attempt_at) WHERE finished_at IS NULL;
-- May an unknown POS id at this location still become ours?
CREATE INDEX placements_without_pos_id ON placements (location_id, requested_at) WHERE provider_order_id IS NULL;

-- Written before each call to a POS, so that a call whose process died is known to have begun.
CREATE TABLE placement_attempts (
  service_order_id text NOT NULL REFERENCES placements ON DELETE CASCADE,
  attempt integer NOT NULL,
  call text NOT NULL CHECK (call IN ('createOrder', 'findOrder')),
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz,
  outcome text NOT NULL DEFAULT 'started',
  http_status integer,
  milliseconds integer,
  error text,
  PRIMARY KEY (service_order_id, attempt)
);
CREATE INDEX placement_attempts_open ON placement_attempts (service_order_id) WHERE ended_at IS NULL;

-- No index mentions a column that a status event changes, and the page keeps room: the update stays HOT.
CREATE TABLE orders (
  service_order_id text PRIMARY KEY,
  location_id text NOT NULL,
  integration text,                             -- at the last attempt; unknown while the location is not configured
  fulfillment text NOT NULL CHECK (fulfillment IN ('pickup', 'delivery')),
  status text,                                  -- NULL while placed or sent
  rank smallint NOT NULL DEFAULT 0,
  sequence integer NOT NULL DEFAULT 0,
  failed_by_us boolean NOT NULL DEFAULT false,
  provider_order_id text,                       -- the first one heard of
  reason text,
  requested_at timestamptz,                     -- when the member wants it
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz
) WITH (fillfactor = 70);
CREATE INDEX orders_open ON orders (location_id, created_at) WHERE ended_at IS NULL;

CREATE TABLE order_contents (
  service_order_id text PRIMARY KEY,
  contents jsonb NOT NULL
);

CREATE TABLE provider_orders (
  location_id text NOT NULL,
  integration text NOT NULL,
  provider_order_id text NOT NULL,
  service_order_id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (location_id, integration, provider_order_id)
);
CREATE INDEX provider_orders_of_order ON provider_orders (service_order_id);

-- Append-only. delivery_id is NULL for what we decided ourselves.
CREATE TABLE status_events (
  service_order_id text NOT NULL,
  event_id bigint GENERATED ALWAYS AS IDENTITY,
  delivery_id uuid,
  status text NOT NULL,
  native_status text NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('applied', 'duplicate', 'stale')),
  conflict boolean NOT NULL DEFAULT false,
  sequence integer,                             -- of an applied one
  provider_order_id text,
  reason text,
  occurred_at timestamptz,
  recorded_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX status_events_of_order ON status_events (service_order_id, event_id);

-- Events known by a POS id that is not ours (yet).
CREATE TABLE parked_events (
  event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  location_id text NOT NULL,
  integration text NOT NULL,
  provider_order_id text NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('parked', 'unmatched')),
  delivery_day date NOT NULL,
  delivery_id uuid NOT NULL,
  rank smallint NOT NULL,
  native_status text NOT NULL,
  reason text,
  occurred_at timestamptz,
  parked_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX parked_events_by_pos_id ON parked_events (location_id, integration, provider_order_id);
CREATE INDEX parked_events_by_age ON parked_events (parked_at);

-- Partitions by day are made ahead by the service, and dropped whole.
CREATE TABLE deliveries (
  day date NOT NULL,
  location_id text NOT NULL,
  id uuid NOT NULL,                             -- a UUIDv7: sorts by arrival
  integration text NOT NULL,
  received_at timestamptz NOT NULL,
  headers jsonb NOT NULL,                       -- without authorization and cookie
  sealed text,                                  -- of a dropped one: those two and the URL's query, a JWE
  body bytea NOT NULL,
  truncated boolean NOT NULL DEFAULT false,
  events smallint NOT NULL,
  outcome text NOT NULL,
  reason text,
  PRIMARY KEY (day, location_id, id)
) PARTITION BY RANGE (day);

CREATE TABLE outbox (
  service_order_id text NOT NULL,
  sequence integer NOT NULL,
  location_id text NOT NULL,
  fulfillment text NOT NULL,
  rank smallint NOT NULL,
  provider_order_id text,
  reason text,
  occurred_at timestamptz,
  applied_at timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 0,
  lease_until timestamptz,
  PRIMARY KEY (service_order_id, sequence)
);
CREATE INDEX outbox_by_age ON outbox (applied_at);
