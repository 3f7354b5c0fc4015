-- What the numbers of all live messages continue above, after a restore. Empty while there was none.
CREATE TABLE sequence_floor (
  id boolean PRIMARY KEY DEFAULT true CHECK (id),
  floor integer NOT NULL
);
