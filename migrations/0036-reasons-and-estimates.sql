-- Why an order failed or was cancelled, as a code that programs can act on, with our ids of the items that the POS named.
-- And when the food will be ready: {as of when the POS said so, ready, with the member}, so that the newest of two is the
-- greater one. In no index: webhooks write them.
ALTER TABLE orders ADD COLUMN reason_code text, ADD COLUMN item_ids jsonb, ADD COLUMN estimate timestamptz[];
ALTER TABLE status_events ADD COLUMN reason_code text, ADD COLUMN item_ids jsonb, ADD COLUMN estimate timestamptz[];
ALTER TABLE parked_events ADD COLUMN why jsonb, ADD COLUMN estimate timestamptz[]; -- why: {reasonCode, itemIds}
ALTER TABLE placement_attempts ADD COLUMN reason_code text;

-- An order whose estimate is to be told by a message of its own. It stays for a minute once that was told, so that there
-- is no second one within it.
CREATE TABLE estimates_due (
  service_order_id text COLLATE "C" PRIMARY KEY,
  sequence integer,                             -- of the order then: a later message has told it. NULL: nothing is to be told
  due_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX estimates_due_by_time ON estimates_due (due_at);

ALTER TABLE placements VALIDATE CONSTRAINT placements_state_check;
ALTER TABLE placement_attempts VALIDATE CONSTRAINT placement_attempts_call_check;
