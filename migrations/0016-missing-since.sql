-- Since when the platform has said that it has no such order; NULL before it says so. It outlives the process.
ALTER TABLE placements ADD COLUMN missing_since timestamptz;
