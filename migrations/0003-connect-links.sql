-- Links with which a restaurant's owner grants us access at the vendor of its POS. Of a link's token only the SHA-256 is
-- stored. A link ends when it is used or expires.
CREATE TABLE connect_links (
  link_id uuid PRIMARY KEY,
  sha256 bytea NOT NULL UNIQUE,
  location_id text COLLATE "C" NOT NULL REFERENCES locations ON DELETE CASCADE,
  integration text NOT NULL,                    -- the location's, when the link was made
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  used_at timestamptz
);
CREATE INDEX connect_links_of_location ON connect_links (location_id);
CREATE INDEX connect_links_by_end ON connect_links (expires_at);

-- Whether the restaurant still grants us access, as far as its vendor or an operator has said.
ALTER TABLE locations
  ADD COLUMN access_granted_at timestamptz,     -- an older report of a withdrawal changes nothing
  ADD COLUMN reconnect_needed_at timestamptz;   -- since then its orders wait for a new grant
