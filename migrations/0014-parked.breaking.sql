-- One row for each status that waits under a POS id: an order's status is the highest that it was given, so a repeat adds
-- nothing. Whether such an event counts as parked or unmatched is its webhook's, and stands there.
--
-- Merges what waits already, the first of each to stand for all. A process of the version before fails here at every
-- webhook, rather than at those alone that would repeat a row.
CREATE TABLE merged (
  location_id text COLLATE "C" NOT NULL,
  integration text COLLATE "C" NOT NULL,
  provider_order_id text COLLATE "C" NOT NULL,
  rank smallint NOT NULL,
  webhook_day date NOT NULL,
  webhook_id uuid NOT NULL,
  native_status text NOT NULL,
  reason text,
  occurred_at timestamptz,
  parked_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO merged
SELECT location_id, integration, provider_order_id, rank,
       (array_agg(webhook_day ORDER BY event_id))[1],
       (array_agg(webhook_id ORDER BY event_id))[1],
       (array_agg(native_status ORDER BY event_id))[1],
       (array_agg(reason ORDER BY event_id) FILTER (WHERE reason IS NOT NULL))[1],
       (array_agg(occurred_at ORDER BY event_id) FILTER (WHERE occurred_at IS NOT NULL))[1],
       min(parked_at)
FROM parked_events
GROUP BY location_id, integration, provider_order_id, rank;
DROP TABLE parked_events;
ALTER TABLE merged RENAME TO parked_events;
ALTER TABLE parked_events ADD PRIMARY KEY (location_id, integration, provider_order_id, rank);
CREATE INDEX parked_events_by_age ON parked_events (parked_at);

-- The sweep starts from the POS ids of the last minute, of which there are few, and looks up what waits for them.
CREATE INDEX IF NOT EXISTS provider_orders_by_age ON provider_orders (created_at);

-- As of when nothing waited for a POS id of ours. One row for all processes, so that the sweep goes on where it stood,
-- however long the service was away.
CREATE TABLE parked_sweep (swept_until timestamptz NOT NULL);
INSERT INTO parked_sweep VALUES (now() - interval '1 day');
