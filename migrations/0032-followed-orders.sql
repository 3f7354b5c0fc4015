-- Which orders members follow now, and through which process: each writes what has changed every few seconds, while anybody
-- follows. The rows of one whose last beat is older than 30 s do not count. Logged, since a standby can read no other table.
-- No member data.
CREATE TABLE following_processes (
  process uuid PRIMARY KEY,
  beat_at timestamptz NOT NULL
);

CREATE TABLE followed_orders (
  service_order_id text COLLATE "C" NOT NULL,
  process uuid NOT NULL REFERENCES following_processes ON DELETE CASCADE,
  PRIMARY KEY (service_order_id, process)
);
