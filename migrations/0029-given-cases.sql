-- Who handed a case over to its holder. They belong to the holder since `given_at`: a process of the previous version
-- changes only `holder` and `taken_at`, and then they no longer count.
ALTER TABLE cases
  ADD COLUMN given_by text,
  ADD COLUMN given_at timestamptz;
