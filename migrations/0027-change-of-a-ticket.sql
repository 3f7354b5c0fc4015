-- What became of the platform's last change of an order that has a ticket, as far as the kitchen or the driver acts on it:
-- `not_applied`, `applied` or `too_late`. `changed_at` is the `seen_at` of the difference that waits or was answered.
ALTER TABLE orders
  ADD COLUMN change text,
  ADD COLUMN changed_at timestamptz;

-- `told` is what the kitchen or the driver acts on, without the texts that only the member wrote. NULL: a process of the
-- previous version stored the row. `applied`: the restaurant said that it did the change.
ALTER TABLE order_changes
  ADD COLUMN told jsonb,
  ADD COLUMN applied boolean NOT NULL DEFAULT false;

ALTER TABLE notices
  DROP CONSTRAINT notices_reason_check,
  ADD CONSTRAINT notices_reason CHECK (reason IN ('late', 'failed', 'in_doubt', 'cancel_by_phone', 'changed')) NOT VALID;
