-- Orders and locations that an operator takes care of, or whose alarm is hidden. A row has one of both ids.
CREATE TABLE cases (
  service_order_id text COLLATE "C" UNIQUE,
  location_id text COLLATE "C" UNIQUE REFERENCES locations ON DELETE CASCADE,
  holder text,                                  -- NULL: nobody has it
  taken_at timestamptz,
  snoozed_at timestamptz,
  snoozed_until timestamptz,
  closed_at timestamptz,                        -- NULL while somebody has it. Later problems are not closed
  changed_at timestamptz NOT NULL DEFAULT now(),
  CHECK (num_nonnulls(service_order_id, location_id) = 1)
);
CREATE INDEX cases_by_change ON cases (changed_at);

-- What operators wrote about an order or a location, for other operators. A text may be about a member, so it is erased
-- with the order's contents. A row has one of both ids.
CREATE TABLE notes (
  note_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  service_order_id text COLLATE "C",
  location_id text COLLATE "C" REFERENCES locations ON DELETE CASCADE,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  by text NOT NULL,                             -- the operator's name
  text text NOT NULL,
  CHECK (num_nonnulls(service_order_id, location_id) = 1)
);
CREATE INDEX notes_of_order ON notes (service_order_id, note_id) WHERE service_order_id IS NOT NULL;
CREATE INDEX notes_of_location ON notes (location_id, note_id) WHERE location_id IS NOT NULL;
CREATE INDEX notes_by_time ON notes (at);

-- The end, the reason and the author of an operator's pause. They belong to the pause that began at `pause_noted_at`: a
-- process of the previous version changes only `paused_at`, and then they no longer count.
ALTER TABLE locations
  ADD COLUMN pause_noted_at timestamptz,
  ADD COLUMN paused_until timestamptz,          -- NULL: until somebody resumes the location
  ADD COLUMN paused_reason text,
  ADD COLUMN paused_by text,
  ADD COLUMN address text,                      -- for people
  ADD COLUMN back_office_url text;              -- the POS's page for its restaurant, for people
CREATE INDEX locations_paused_until ON locations (paused_until) WHERE paused_until IS NOT NULL;
