-- A hash of the restaurant at the POS that the settings name, so that two locations are compared without decrypting them.
-- Empty: they name none. NULL: not known; it is noted when a change of another location asks for it.
ALTER TABLE locations ADD COLUMN target_sha256 bytea;

-- Every change of the settings forgets it, also one by a process of the previous version.
CREATE FUNCTION expediter.forget_target() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.target_sha256 := NULL;
  RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION expediter.forget_target() FROM PUBLIC;
CREATE TRIGGER forget_target BEFORE UPDATE OF settings ON locations
  FOR EACH ROW WHEN (OLD.settings IS DISTINCT FROM NEW.settings) EXECUTE FUNCTION expediter.forget_target();
