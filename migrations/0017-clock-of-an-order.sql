-- The clock of an order on its way. Its deadline and `late` count from it, and a pause of its location is taken off once.
ALTER TABLE placements
  ADD COLUMN clock_at timestamptz,              -- when it was due, plus the pauses since; NULL: no pause has ended
  ADD COLUMN moved_at timestamptz;              -- when the platform moved it to its location; NULL: never
