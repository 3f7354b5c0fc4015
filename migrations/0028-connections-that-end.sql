-- For how many seconds since its grant a connection lasts without another renewal; NULL: it does not end by itself. Not a
-- time, so that a grant which the version before renews moves it as well.
ALTER TABLE credentials ADD COLUMN lasts_s integer;

-- The credentials that a location's settings lead to, if its connection may end; written with the settings.
ALTER TABLE locations ADD COLUMN grant_sha256 bytea;
