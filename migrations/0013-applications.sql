-- Vendor applications: the platform's own ids and secrets at the vendors of POS systems, encrypted. Locations refer to
-- them by name.
CREATE TABLE applications (
  name text COLLATE "C" PRIMARY KEY,
  integration text NOT NULL,
  settings text NOT NULL,                       -- encrypted, with SETTINGS_KEY
  updated_at timestamptz NOT NULL DEFAULT now()
);

-- The application that the location's settings name. NULL: none. Settings are encrypted, so statements cannot read it there.
ALTER TABLE locations ADD COLUMN application text COLLATE "C";
