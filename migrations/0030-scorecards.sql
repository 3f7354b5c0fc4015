-- What came of the orders of each hour, by location and, with the location '', by integration, for vendors' scorecards. Made
-- of what is kept of the orders, every ten minutes anew for the last hours. No member data.
CREATE TABLE scorecard_hours (
  location_id text COLLATE "C" NOT NULL,
  integration text COLLATE "C" NOT NULL,
  hour timestamptz NOT NULL,                    -- in which the orders were signalled
  orders integer NOT NULL,
  acceptance integer[] NOT NULL,                -- from the ticket until the POS had said something, by LATENCY_BOUNDS
  missing integer NOT NULL,                     -- statuses that only an answer told
  duplicates integer NOT NULL,
  late integer NOT NULL,                        -- stale: a later status was known already
  conflicts integer NOT NULL,
  refusals jsonb NOT NULL,                      -- orders failed or held, by the code of the cause
  down_minutes integer NOT NULL,                -- in which they were sent, and nothing was answered
  PRIMARY KEY (location_id, integration, hour)
);
CREATE INDEX scorecard_hours_by_hour ON scorecard_hours (hour);

-- When the last hours were scored.
CREATE TABLE scorecard_scored (scored_at timestamptz NOT NULL);
INSERT INTO scorecard_scored VALUES (now() - interval '1 h');
