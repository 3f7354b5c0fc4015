-- A grant waits in its link's row until the restaurant's owner has confirmed whose account it is.
ALTER TABLE connect_links
  ADD COLUMN origins text[],         -- where the settings may lead besides the vendor's own hosts; null means nowhere
  ADD COLUMN granted_at timestamptz,
  ADD COLUMN sealed text;            -- the unconfirmed grant, encrypted
