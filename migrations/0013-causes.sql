-- Why, as data beside the sentence: a code and its details.
ALTER TABLE webhooks ADD COLUMN cause jsonb;
ALTER TABLE placements ADD COLUMN cause jsonb;
