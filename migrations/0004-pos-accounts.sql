-- What POS systems grant for a time: one row for each set of settings that a grant stems from, shared by all locations
-- and processes that have these settings.
CREATE TABLE credentials (
  seed_sha256 bytea PRIMARY KEY,                -- integration and settings; other settings begin anew
  integration text NOT NULL,
  "grant" text,                                 -- a JWE under SETTINGS_KEY; NULL until there is one
  generation integer NOT NULL DEFAULT 0,        -- counts the grants
  expires_at timestamptz,                       -- of the access token
  renewer uuid,                                 -- who asks the POS for the next one, and until when it may
  renewing_until timestamptz,
  granted_at timestamptz
);

-- Whose POS the last request for a ticket went to, as a hash: another one's knows nothing of that ticket.
ALTER TABLE placements ADD COLUMN pos_account text;
