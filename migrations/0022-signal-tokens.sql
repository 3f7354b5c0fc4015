-- Tokens with which ordering platforms send signals by HTTP. The token is printed once and never stored.
CREATE TABLE signal_tokens (
  token_id uuid PRIMARY KEY,
  sha256 bytea NOT NULL UNIQUE,
  kind text NOT NULL,                           -- how the platform signs, and where it puts the id of the order
  sealed text,                                  -- the platform's secrets, encrypted with SETTINGS_KEY; NULL: it does not sign
  label text,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz                      -- written every ten seconds
);
