-- Settings of a location's former integration. Webhooks about the orders that its POS still has are verified with them.
CREATE TABLE former_settings (
  location_id text COLLATE "C" PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  integration text NOT NULL,
  settings text NOT NULL,                       -- a JWE under SETTINGS_KEY
  application text,                             -- the vendor application that they name
  left_at timestamptz NOT NULL DEFAULT now()
);
