-- What operators say of a location besides its settings, and groups of locations, such as a brand or a region.
ALTER TABLE locations
  ADD COLUMN name text,                                           -- for people
  ADD COLUMN time_zone text,                                      -- an IANA name
  ADD COLUMN contacts jsonb NOT NULL DEFAULT '[]',                -- [{name, email, phone}], of the restaurant
  ADD COLUMN groups text[] COLLATE "C" NOT NULL DEFAULT '{}';
CREATE INDEX locations_of_group ON locations USING gin (groups);

-- Roles may apply at groups of locations. A right with groups always has `locations`, if need be an empty list: a process
-- of the previous version, which knows no groups, would read NULL as all locations.
ALTER TABLE operator_tokens
  ADD COLUMN location_groups text[] COLLATE "C" NOT NULL DEFAULT '{}',
  DROP CONSTRAINT operator_tokens_locations_check,
  ADD CONSTRAINT operator_tokens_scope CHECK (CASE WHEN locations IS NULL THEN location_groups = '{}'
    ELSE cardinality(locations) + cardinality(location_groups) > 0 END) NOT VALID;
ALTER TABLE operator_grants
  ADD COLUMN location_groups text[] COLLATE "C" NOT NULL DEFAULT '{}',
  DROP CONSTRAINT operator_grants_locations_check,
  ADD CONSTRAINT operator_grants_scope CHECK (CASE WHEN locations IS NULL THEN location_groups = '{}'
    ELSE cardinality(locations) + cardinality(location_groups) > 0 END) NOT VALID;
