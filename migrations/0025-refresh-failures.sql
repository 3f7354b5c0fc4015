-- Why the last fetch of a known order failed, and since when it fails. NULL after a fetch that succeeded.
ALTER TABLE refreshes ADD COLUMN failing_since timestamptz, ADD COLUMN problem text, ADD COLUMN cause jsonb;
