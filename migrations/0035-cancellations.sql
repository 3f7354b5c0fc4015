-- An order that is to be cancelled at its POS, or before it gets there. One row for as long as the order is kept.
CREATE TABLE cancellations (
  service_order_id text COLLATE "C" PRIMARY KEY,
  location_id text COLLATE "C" NOT NULL,
  asked_by text NOT NULL CHECK (asked_by IN ('platform', 'operator')),
  requested_at timestamptz NOT NULL DEFAULT now(),
  -- due: to be asked of the POS. asked: the POS will say in a webhook. in_doubt: a request's answer was lost, and it is
  -- not to be repeated. by_phone: only a person can. cancelled, refused: over.
  state text NOT NULL DEFAULT 'due' CHECK (state IN ('due', 'asked', 'in_doubt', 'by_phone', 'cancelled', 'refused')),
  deadline_at timestamptz NOT NULL,
  next_attempt_at timestamptz NOT NULL DEFAULT now(), -- infinity: an operator's turn
  lease_id uuid,
  lease_until timestamptz,
  failures integer NOT NULL DEFAULT 0,
  problem text,                                 -- for the operator
  cause jsonb,
  finished_at timestamptz
);
CREATE INDEX cancellations_open ON cancellations (next_attempt_at) WHERE finished_at IS NULL;

-- What is told beside the status, and stops every further attempt to place the order.
ALTER TABLE orders ADD COLUMN cancellation text;

-- A signal for an order that is known: it is fetched once more. Gathered: one row an order, deleted once nothing new came
-- since it was claimed.
CREATE TABLE looks (
  service_order_id text COLLATE "C" PRIMARY KEY,
  signalled_at timestamptz NOT NULL DEFAULT now(),
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  lease_id uuid,
  lease_until timestamptz,
  failures integer NOT NULL DEFAULT 0
);
CREATE INDEX looks_by_time ON looks (next_attempt_at);

-- What the platform changed after the POS had the order, by field. It may tell of the member, and goes with the contents.
CREATE TABLE order_changes (
  service_order_id text COLLATE "C" NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT now(),
  changes jsonb NOT NULL,
  PRIMARY KEY (service_order_id, seen_at)
);
CREATE INDEX order_changes_by_time ON order_changes (seen_at);

ALTER TABLE placements
  DROP CONSTRAINT placements_state_check,
  ADD CONSTRAINT placements_state_check
    CHECK (state IN ('waiting', 'held', 'in_doubt', 'sent', 'failed', 'withdrawn')) NOT VALID;
ALTER TABLE placement_attempts
  DROP CONSTRAINT placement_attempts_call_check,
  ADD CONSTRAINT placement_attempts_call_check CHECK (call IN ('createOrder', 'findOrder', 'cancelOrder')) NOT VALID;
