-- Why, as data beside the sentence: {"code", …details}.
ALTER TABLE webhooks ADD COLUMN cause jsonb;
ALTER TABLE placements ADD COLUMN cause jsonb;
