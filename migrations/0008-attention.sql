-- What needs a person, as it was told to the operators' own chat or pager. The row is its own outbox: an event is
-- published while its sequence is above `published_sequence`.
CREATE TABLE attention_items (
  item_key text COLLATE "C" PRIMARY KEY,        -- its kind, a space, and the order's or the location's id
  kind text NOT NULL,
  about jsonb NOT NULL,                         -- the fields of the event. No member data
  opened_at timestamptz NOT NULL DEFAULT now(),
  told_at timestamptz NOT NULL DEFAULT now(),   -- when the newest event was made
  reminded_at timestamptz,
  closed_at timestamptz,                        -- NULL while it needs a person
  reminders integer NOT NULL DEFAULT 0,
  event text NOT NULL DEFAULT 'opened' CHECK (event IN ('opened', 'updated', 'closed')),
  -- Milliseconds since 1970, or one more than the last: it grows even after the row was deleted.
  sequence bigint NOT NULL DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000),
  published_sequence bigint NOT NULL DEFAULT 0,
  lease_id uuid,
  lease_until timestamptz,
  failures integer NOT NULL DEFAULT 0
);
CREATE INDEX attention_items_to_publish ON attention_items (sequence) WHERE published_sequence < sequence;
