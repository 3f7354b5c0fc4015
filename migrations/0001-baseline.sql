-- The tables of the first release. The words are explained in docs/glossary.md.
--
-- `expediter migrate` creates the schema `expediter` first, and this file runs with `search_path = expediter`. Nothing
-- is in `public`.
--
-- Member data is in the contents and changes of orders, in the bodies of webhooks, and in reasons, problems, item ids
-- and tracking links; nowhere else. No table has a plain token, password or setting.
--
-- Text in an index is `COLLATE "C"`: it compares by bytes, whatever the database's collation is. A collation of the
-- operating system or of ICU may sort in another way after an upgrade. An index that was built before then misses rows:
-- a second order with the same id, a webhook that belongs to nobody. And en_US of glibc cost 15 % of the webhooks a
-- second.

---- Locations

CREATE TABLE locations (
  location_id text COLLATE "C" PRIMARY KEY,
  integration text NOT NULL,
  settings text NOT NULL,                       -- a JWE under SETTINGS_KEY
  paused_at timestamptz,                        -- by an operator
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  country text,                                 -- ISO 3166-1 alpha-2, for national telephone numbers; NULL: unknown
  -- A pause by the POS, such as of a busy kitchen, has an end. It is separate from paused_at: neither ends the other.
  pos_paused_at timestamptz,                    -- NULL: the POS has not paused it
  pos_paused_until timestamptz,                 -- NULL exactly where pos_paused_at is
  pos_said_at timestamptz,                      -- the POS's last message about it; an earlier message changes nothing
  grant_sha256 bytea                            -- the `credentials` of these settings, if their connection may end
);
CREATE INDEX locations_pos_paused ON locations (pos_paused_until) WHERE pos_paused_until IS NOT NULL;
-- This index and webhook_tokens_changed: what has changed since a process read its list of valid tokens, which it
-- decides by while Postgres is away. Neither contains a column that the use of a token changes.
CREATE INDEX locations_changed ON locations (updated_at);

-- The token itself is printed once and stored nowhere.
CREATE TABLE webhook_tokens (
  token_id uuid PRIMARY KEY,
  sha256 bytea NOT NULL UNIQUE,
  integration text NOT NULL,
  location_id text COLLATE "C" NOT NULL REFERENCES locations ON DELETE CASCADE,
  label text,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz                      -- written every ten seconds
);
CREATE INDEX webhook_tokens_of_location ON webhook_tokens (location_id);
CREATE INDEX webhook_tokens_changed ON webhook_tokens (greatest(created_at, revoked_at));

-- Tokens that were removed with their location. A process that has such a token in memory learns here that it is gone.
-- The next removal deletes rows that are older than a day.
CREATE TABLE removed_tokens (
  sha256 bytea PRIMARY KEY,
  removed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX removed_tokens_by_time ON removed_tokens (removed_at);

-- When a webhook of a location was last accepted. It is written every ten seconds, not with the webhook.
CREATE TABLE location_last_seen (
  location_id text COLLATE "C" PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  integration text NOT NULL,
  last_seen_at timestamptz NOT NULL
);

-- What POS systems grant for a time. One row for each set of settings that leads to a grant: all locations and
-- processes with these settings share it.
CREATE TABLE credentials (
  seed_sha256 bytea PRIMARY KEY,                -- integration and settings: other settings get a new row
  integration text NOT NULL,
  "grant" text,                                 -- a JWE under SETTINGS_KEY; NULL until the first one
  generation integer NOT NULL DEFAULT 0,        -- counts the grants
  expires_at timestamptz,                       -- of the access token
  renewer uuid,                                 -- the lease of the process that requests the next grant
  renewing_until timestamptz,
  granted_at timestamptz,
  lasts_s integer                               -- the connection ends so long after its grant; NULL: it has no end
);

---- Orders on their way to the POS

-- The row is the job: this table is the queue.
CREATE TABLE placements (
  service_order_id text COLLATE "C" PRIMARY KEY,
  location_id text COLLATE "C",                 -- unknown until the first fetch
  state text COLLATE "C" NOT NULL DEFAULT 'waiting'
    CHECK (state IN ('waiting', 'held', 'in_doubt', 'sent', 'failed', 'withdrawn')),
  signalled_at timestamptz NOT NULL DEFAULT now(),
  deadline_at timestamptz NOT NULL,
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  lease_id uuid,
  lease_until timestamptz,
  attempts integer NOT NULL DEFAULT 0,
  failures integer NOT NULL DEFAULT 0,          -- since the last success; sets the back-off
  requested_at timestamptz,                     -- the last request to the POS began
  request_ended_at timestamptz,                 -- and ended, as far as we know
  provider_order_id text,
  problem text,                                 -- why it waits, is held, is in doubt or failed; for the operator
  finished_at timestamptz,
  pos_account text,                             -- of the last request, as a hash: only this account can know the ticket
  cause jsonb,                                  -- the problem as data: a code and its details
  missing_since timestamptz,                    -- since when the platform says that it has no such order
  last_notified_sequence integer NOT NULL DEFAULT 0,     -- the last live message before the first fetch; the order's go on above
  polled_at timestamptz,                         -- the last status poll of this order
  polls smallint NOT NULL DEFAULT 0,            -- polls since the last news
  missed smallint NOT NULL DEFAULT 0,           -- polls that told more than the webhooks had
  absent_at timestamptz                         -- an operator said that the POS lacks it: earlier answers do not count
);
-- The claim steps from location to location (NULL is one of them: not fetched yet) and takes the oldest of each.
CREATE INDEX placements_open ON placements (coalesce(location_id, ''), next_attempt_at) WHERE finished_at IS NULL;
-- What is due at any location, without a step through all locations that have an open order.
CREATE INDEX placements_due ON placements (next_attempt_at) WHERE finished_at IS NULL;
-- May an unknown POS id at this location still become ours?
CREATE INDEX placements_without_pos_id ON placements (location_id, requested_at) WHERE provider_order_id IS NULL;
-- Which orders were sent recently, and may not have been received?
CREATE INDEX placements_sent ON placements (finished_at) WHERE state = 'sent';
-- Operators page through placements, newest first: all, those of a location, or those that did not simply succeed.
CREATE INDEX placements_by_signal ON placements (signalled_at, service_order_id);
CREATE INDEX placements_of_location ON placements (location_id, signalled_at, service_order_id);
CREATE INDEX placements_not_sent ON placements (state, signalled_at, service_order_id) WHERE state <> 'sent';
-- Problems of orders that were never fetched, so that have no row in `orders`.
CREATE INDEX placements_to_erase ON placements (finished_at)
  WHERE finished_at IS NOT NULL AND location_id IS NULL AND problem IS NOT NULL;

-- Written before each call to a POS. So a call is known to have begun even if its process died.
CREATE TABLE placement_attempts (
  service_order_id text COLLATE "C" NOT NULL REFERENCES placements ON DELETE CASCADE,
  attempt integer NOT NULL,
  call text NOT NULL CHECK (call IN ('createOrder', 'findOrder', 'cancelOrder')),
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz,
  outcome text NOT NULL DEFAULT 'started',
  http_status integer,
  milliseconds integer,
  error text,
  reason_code text,
  PRIMARY KEY (service_order_id, attempt)
);
CREATE INDEX placement_attempts_open ON placement_attempts (service_order_id) WHERE ended_at IS NULL;

-- A signal for a known order: it is fetched again. One row an order collects the signals. It is deleted once no signal
-- came since it was claimed.
CREATE TABLE refreshes (
  service_order_id text COLLATE "C" PRIMARY KEY,
  signalled_at timestamptz NOT NULL DEFAULT now(),
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  lease_id uuid,
  lease_until timestamptz,
  failures integer NOT NULL DEFAULT 0
);
CREATE INDEX refreshes_by_time ON refreshes (next_attempt_at);

-- An order that has to be cancelled at its POS, or before it gets there. The row lives as long as the order.
CREATE TABLE cancellations (
  service_order_id text COLLATE "C" PRIMARY KEY,
  location_id text COLLATE "C" NOT NULL,
  requested_by text NOT NULL CHECK (requested_by IN ('platform', 'operator')),
  requested_at timestamptz NOT NULL DEFAULT now(),
  -- due: the POS has to be asked. asked: the POS will answer in a webhook. in_doubt: the answer to a request was lost,
  -- and the request must not be repeated. by_phone: only a person can do it. cancelled, refused: finished.
  state text NOT NULL DEFAULT 'due' CHECK (state IN ('due', 'asked', 'in_doubt', 'by_phone', 'cancelled', 'refused')),
  deadline_at timestamptz NOT NULL,
  next_attempt_at timestamptz NOT NULL DEFAULT now(), -- infinity: an operator has to act
  lease_id uuid,
  lease_until timestamptz,
  failures integer NOT NULL DEFAULT 0,
  problem text,                                 -- for the operator
  cause jsonb,
  finished_at timestamptz
);
CREATE INDEX cancellations_open ON cancellations (next_attempt_at) WHERE finished_at IS NULL;

---- Orders

-- No index mentions a column that a status event changes, and each page has free space: so the update stays HOT.
CREATE TABLE orders (
  service_order_id text COLLATE "C" PRIMARY KEY,
  location_id text COLLATE "C" NOT NULL,
  integration text,                             -- at the last attempt; NULL while the location is not configured
  fulfillment text NOT NULL CHECK (fulfillment IN ('pickup', 'delivery')),
  -- The rank of its status. Ranks are ten apart, so that a new status fits between two.
  rank smallint NOT NULL DEFAULT 0,
  sequence integer NOT NULL DEFAULT 0,          -- of its last live message
  failed_by_us boolean NOT NULL DEFAULT false,
  provider_order_id text,                       -- the first one that came
  reason text,
  requested_at timestamptz,                     -- when the member wants it
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,
  erased_at timestamptz,                        -- its member data is gone, and none is written again
  left_out jsonb,                               -- what was left out when it was read: codes and paths, no values
  call_out_code text,                           -- the short code by which it is called out
  cancellation text,                            -- shown next to the status; stops further attempts to place it
  -- Why it failed or was cancelled: a code that programs can act on, and our ids of the items that the POS named.
  reason_code text,
  item_ids jsonb,
  -- When the food will be ready: {when the POS said so, ready, with the member}, so that the newer of two is the
  -- greater one.
  estimate timestamptz[],
  -- Where a member follows the courier: {when the POS said so, the link}, so that the newer of two is the greater one.
  -- The time is written as 2027-01-31T18:00:00.000Z, which sorts as text.
  tracking text[] COLLATE "C"
) WITH (fillfactor = 70);
CREATE INDEX orders_open ON orders (location_id, created_at) WHERE ended_at IS NULL;
CREATE INDEX orders_to_erase ON orders (ended_at) WHERE ended_at IS NOT NULL AND erased_at IS NULL;

-- The member is named here alone. So the erasure of a member finds the orders without a read of all of them, and the
-- name goes with the contents.
CREATE TABLE order_contents (
  service_order_id text COLLATE "C" PRIMARY KEY,
  contents jsonb NOT NULL
);
CREATE INDEX order_contents_of_member ON order_contents (((contents #>> '{member,id}') COLLATE "C"));

-- What the platform changed after the POS had the order, by field. It may be about the member, and goes with the
-- contents.
CREATE TABLE order_changes (
  service_order_id text COLLATE "C" NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT now(),
  changes jsonb NOT NULL,
  PRIMARY KEY (service_order_id, seen_at)
);
CREATE INDEX order_changes_by_time ON order_changes (seen_at);

CREATE TABLE provider_orders (
  location_id text COLLATE "C" NOT NULL,
  integration text COLLATE "C" NOT NULL,
  provider_order_id text COLLATE "C" NOT NULL,
  service_order_id text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (location_id, integration, provider_order_id)
);
CREATE INDEX provider_orders_of_order ON provider_orders (service_order_id);
-- The sweep of parked events starts from the POS ids of the last minute, which are few.
CREATE INDEX provider_orders_by_age ON provider_orders (created_at);

-- How many call-out codes a location has given. The seed is drawn once and mixes them: codes do not show their number.
CREATE TABLE call_outs (
  location_id text COLLATE "C" PRIMARY KEY,
  given integer NOT NULL DEFAULT 0,
  seed integer NOT NULL DEFAULT floor(random() * 2147483648)
) WITH (fillfactor = 70);

---- Statuses

-- Append-only, except that the erasure of member data changes reason and item_ids.
CREATE TABLE status_events (
  service_order_id text COLLATE "C" NOT NULL,
  event_id bigint GENERATED ALWAYS AS IDENTITY,
  webhook_id uuid,                              -- NULL: our own decision
  status text NOT NULL,
  native_status text NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('applied', 'duplicate', 'stale')),
  conflict boolean NOT NULL DEFAULT false,
  sequence integer,                             -- of an applied one
  provider_order_id text,
  reason text,
  occurred_at timestamptz,
  recorded_at timestamptz NOT NULL DEFAULT now(),
  reason_code text,                             -- this and the next two: as in `orders`
  item_ids jsonb,
  estimate timestamptz[]
);
CREATE INDEX status_events_of_order ON status_events (service_order_id, event_id);
-- For the board, newest first. It has few of all rows: the insert of any other row does not pay for it.
CREATE INDEX status_events_conflicts ON status_events (recorded_at) WHERE conflict;

-- Events with a POS id that is not ours (yet). One row for each status that waits under a POS id: an order's status is
-- the highest that it was given, so a repeat adds nothing. Whether the event counts as parked or unmatched is stored
-- with its webhook.
CREATE TABLE parked_events (
  location_id text COLLATE "C" NOT NULL,
  integration text COLLATE "C" NOT NULL,
  provider_order_id text COLLATE "C" NOT NULL,
  rank smallint NOT NULL,
  webhook_day date NOT NULL,
  webhook_id uuid NOT NULL,
  native_status text NOT NULL,
  reason text,
  occurred_at timestamptz,
  parked_at timestamptz NOT NULL DEFAULT now(),
  why jsonb,                                    -- {reasonCode, itemIds}
  estimate timestamptz[],                       -- as in `orders`
  tracking text[] COLLATE "C",                  -- as in `orders`
  PRIMARY KEY (location_id, integration, provider_order_id, rank)
);
CREATE INDEX parked_events_by_age ON parked_events (parked_at);

-- The time until which no event waits for a POS id of ours. One row for all processes: the sweep continues from there,
-- however long the service was away.
CREATE TABLE parked_sweep (swept_until timestamptz NOT NULL);
INSERT INTO parked_sweep VALUES (now() - interval '1 day');

-- Status polling: a POS that is silent about an order is asked for its status.
CREATE TABLE location_polls (
  location_id text COLLATE "C" PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  integration text NOT NULL,                    -- that missed_at is about
  next_poll_at timestamptz NOT NULL,             -- of any of its orders
  missed_at timestamptz                         -- when an answer last told more than the webhooks had
);

---- Webhooks

-- The service creates the partition of each UTC day in advance, and drops it whole.
CREATE TABLE webhooks (
  day date NOT NULL,
  location_id text COLLATE "C" NOT NULL,
  id uuid NOT NULL,                             -- a UUIDv7: sorts by arrival
  integration text NOT NULL,
  received_at timestamptz NOT NULL,
  headers jsonb NOT NULL,                       -- without authorization and cookie
  sealed text,                                  -- a JWE: a dropped one's query and these two; or a body with our token
  body bytea NOT NULL,
  truncated boolean NOT NULL DEFAULT false,
  events smallint NOT NULL,
  outcome text NOT NULL,
  reason text,
  -- A replay is a webhook of its own, with the body and the headers of the one that it replays. If it is dropped as
  -- well, the first one has them.
  replay_of uuid,                               -- the first one, also where a replay was replayed
  first_received_at timestamptz,                -- when the first one came: signatures are judged by this time
  cause jsonb,                                  -- the reason as data: a code and its details
  -- The answer to a status poll. Its body is the events that were read in the answer. It has no sender, no signature.
  polled boolean NOT NULL DEFAULT false,
  zstd_of integer,                              -- bytes before zstd by the service; NULL: the body is as it came
  PRIMARY KEY (day, location_id, id)
) PARTITION BY RANGE (day);
-- Each of these indexes has few of all rows: the insert of any other row does not pay for it.
-- Those of no order are erased before their partition is dropped.
CREATE INDEX webhooks_of_no_order ON webhooks (received_at)
  WHERE outcome IN ('ignored', 'unmatched') AND reason IS NULL;
CREATE INDEX webhooks_replays ON webhooks (replay_of) WHERE replay_of IS NOT NULL;
CREATE INDEX webhooks_dropped ON webhooks (location_id, id) WHERE outcome = 'dropped';
CREATE INDEX webhooks_sealed ON webhooks (location_id, id) WHERE sealed IS NOT NULL;
CREATE INDEX webhooks_refused ON webhooks (location_id, received_at) WHERE cause ->> 'code' = 'old_token';

-- The service's role owns nothing. It calls these functions for what only the owner may do to a day of webhooks. They
-- run as the owner. Their own search_path finds no object of a caller, and only a granted role may call them.
CREATE FUNCTION expediter.ensure_webhook_partition(day date) RETURNS void
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  child text := 'expediter.webhooks_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF day NOT BETWEEN '2000-01-01' AND '9999-12-30' THEN RAISE EXCEPTION 'no day of webhooks: %', day; END IF;
  IF EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'expediter.webhooks'::regclass AND inhrelid = to_regclass(child))
  THEN RETURN; END IF;
  -- A table that exists is a day that was detached and not dropped. It becomes a partition again, with its rows.
  -- Created first and then attached, it blocks no webhook; CREATE TABLE PARTITION OF would.
  EXECUTE format('CREATE TABLE IF NOT EXISTS %s (LIKE expediter.webhooks INCLUDING ALL)', child);
  EXECUTE format('ALTER TABLE expediter.webhooks ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)',
                 child, to_char(day, 'YYYY-MM-DD'), to_char(day + 1, 'YYYY-MM-DD'));
END $$;

-- Webhooks queue behind a statement that waits for this lock. So it waits for less time than they do, and a later
-- round tries again. A day that WEBHOOK_RETENTION_DAYS may still keep is not dropped: the least is 2.
CREATE FUNCTION expediter.drop_webhook_partition(day date) RETURNS boolean
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  child regclass := to_regclass('expediter.webhooks_' || to_char(day, 'YYYYMMDD'));
BEGIN
  IF day NOT BETWEEN '2000-01-01' AND '9999-12-30' THEN RAISE EXCEPTION 'no day of webhooks: %', day; END IF;
  IF day >= (now() AT TIME ZONE 'UTC')::date - 2 THEN
    RAISE EXCEPTION 'a day of webhooks is kept for two days at least: %', day;
  END IF;
  IF child IS NULL THEN RETURN false; END IF;
  IF (SELECT relispartition FROM pg_class WHERE oid = child) THEN
    LOCK TABLE ONLY expediter.webhooks IN ACCESS EXCLUSIVE MODE;
  END IF;
  -- With the parent's lock held, it waits for nothing more.
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', child);
  EXECUTE format('DROP TABLE %s', child);
  RETURN true;
END $$;

REVOKE ALL ON FUNCTION expediter.ensure_webhook_partition(date), expediter.drop_webhook_partition(date) FROM PUBLIC;

-- How much is stored of webhooks that were dropped before their sender was proven. Beyond DROPPED_QUOTA they are
-- counted and not stored. One row a location, of the last day that had any, written periodically.
CREATE TABLE dropped_bytes (
  location_id text COLLATE "C" PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  day date NOT NULL,                            -- in UTC
  bytes bigint NOT NULL,                        -- taken from the quota, some of it in advance
  not_stored bigint NOT NULL DEFAULT 0          -- webhooks that have no row in `webhooks`
) WITH (fillfactor = 70);

-- The same for webhooks that were refused for an old token. It is separate: the holder of a revoked token takes nothing
-- from the quota of the others.
CREATE TABLE refused_bytes (
  location_id text COLLATE "C" PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  day date NOT NULL,
  bytes bigint NOT NULL,
  not_stored bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);

---- Live messages

CREATE TABLE outbox (
  service_order_id text COLLATE "C" NOT NULL,
  sequence integer NOT NULL,
  rank smallint NOT NULL,
  provider_order_id text,
  reason text,
  occurred_at timestamptz,
  applied_at timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 0,
  lease_until timestamptz,
  -- When the webhook of this message first came, if it was applied later: after a replay, or a wait for its POS id.
  first_received_at timestamptz,
  PRIMARY KEY (service_order_id, sequence)
);
CREATE INDEX outbox_by_age ON outbox (applied_at);

-- What the outbox held, once the topic has it: from then on a member can know. No member data.
CREATE TABLE live_messages (
  service_order_id text COLLATE "C" NOT NULL,
  sequence integer NOT NULL,
  rank smallint NOT NULL,
  applied_at timestamptz NOT NULL,
  published_at timestamptz NOT NULL DEFAULT now(),
  provider_order_id text,                       -- repeated to the followers of an order, as the topic has it
  first_received_at timestamptz,                -- as in `outbox`
  PRIMARY KEY (service_order_id, sequence)
);
-- What the topic got since a process last read, for the followers of an order.
CREATE INDEX live_messages_by_time ON live_messages (published_at);

-- After a restore, the numbers of all live messages continue above this one. Empty if there was no restore.
CREATE TABLE sequence_floor (
  id boolean PRIMARY KEY DEFAULT true CHECK (id),
  floor integer NOT NULL
);

-- An order whose estimate needs a message of its own. The row stays for a minute after the message, so that there is no
-- second one within it.
CREATE TABLE estimates_due (
  service_order_id text COLLATE "C" PRIMARY KEY,
  sequence integer,                             -- the order's then: a later message has told it. NULL: none is due
  due_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX estimates_due_by_time ON estimates_due (due_at);

-- Which orders members follow now, and through which process. While anybody follows, each process writes its changes
-- every few seconds. Rows of a process whose last beat is older than 30 s do not count. Logged, since a standby cannot
-- read an unlogged table. No member data.
CREATE TABLE following_processes (
  process uuid PRIMARY KEY,
  beat_at timestamptz NOT NULL
);
CREATE TABLE followed_orders (
  service_order_id text COLLATE "C" NOT NULL,
  process uuid NOT NULL REFERENCES following_processes ON DELETE CASCADE,
  PRIMARY KEY (service_order_id, process)
);

---- Charts

-- What went through in each minute of the last day. Every process adds to it every ten seconds. No member data, no
-- order id. The pages have free space, so that the additions within a row's minute stay HOT.
CREATE TABLE traffic (
  location_id text COLLATE "C" NOT NULL,        -- '': all of an integration, also what belongs to no known location
  minute timestamptz NOT NULL,
  integration text COLLATE "C" NOT NULL,
  what text COLLATE "C" NOT NULL,               -- webhook, placement, live
  outcome text COLLATE "C" NOT NULL,
  count integer NOT NULL,
  latencies integer[],                          -- counts by LATENCY_BOUNDS; NULL where nothing took time
  PRIMARY KEY (location_id, minute, integration, what, outcome)
) WITH (fillfactor = 70);
CREATE INDEX traffic_by_minute ON traffic (minute);

-- The results of each hour's orders, for the vendors' scorecards. Every ten minutes the last hours are computed again,
-- from what is stored of the orders. No member data.
CREATE TABLE scorecard_hours (
  location_id text COLLATE "C" NOT NULL,        -- '': all of an integration
  integration text COLLATE "C" NOT NULL,
  hour timestamptz NOT NULL,                    -- in which the orders were signalled
  orders integer NOT NULL,
  acceptance integer[] NOT NULL,                -- from the ticket to the POS's first status; counts by LATENCY_BOUNDS
  missing integer NOT NULL,                     -- statuses that only a poll told
  duplicates integer NOT NULL,
  late integer NOT NULL,                        -- stale: a later status was known already
  conflicts integer NOT NULL,
  refusals jsonb NOT NULL,                      -- orders failed or held, by the code of the cause
  down_minutes integer NOT NULL,                -- in which calls were made and none was answered
  PRIMARY KEY (location_id, integration, hour)
);
CREATE INDEX scorecard_hours_by_hour ON scorecard_hours (hour);

-- When the last hours were computed.
CREATE TABLE scorecard_scored (scored_at timestamptz NOT NULL);
INSERT INTO scorecard_scored VALUES (now() - interval '1 h');

---- Operators: who may do what, and what they did. Of each credential only its SHA-256 is stored.

-- A named token, for a program, or for a person where there is no OIDC.
CREATE TABLE operator_tokens (
  token_id uuid PRIMARY KEY,
  sha256 bytea NOT NULL UNIQUE,
  name text COLLATE "C" NOT NULL,
  roles text[] NOT NULL CHECK (cardinality(roles) > 0),
  locations text[] CHECK (cardinality(locations) > 0), -- NULL: all
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
CREATE UNIQUE INDEX operator_tokens_by_name ON operator_tokens (name) WHERE revoked_at IS NULL;

-- What a person may do who signs in by OIDC: granted to an address, or to a whole group.
CREATE TABLE operator_grants (
  grant_id uuid PRIMARY KEY,
  email text COLLATE "C" CHECK (email = lower(email)),
  group_name text COLLATE "C",
  roles text[] NOT NULL CHECK (cardinality(roles) > 0),
  locations text[] CHECK (cardinality(locations) > 0), -- NULL: all
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK (num_nonnulls(email, group_name) = 1)
);
CREATE INDEX operator_grants_by_email ON operator_grants (email);
CREATE INDEX operator_grants_by_group ON operator_grants (group_name);

-- A browser that signed in. Its cookie is 32 random bytes.
CREATE TABLE operator_sessions (
  session_id uuid PRIMARY KEY,
  sha256 bytea NOT NULL UNIQUE,
  kind text NOT NULL CHECK (kind IN ('person', 'token', 'operator_token')),
  actor_id text COLLATE "C" NOT NULL,           -- a person's issuer and subject, or a token's id
  name text NOT NULL,
  email text COLLATE "C" CHECK (email = lower(email)), -- verified by the issuer
  groups text[] COLLATE "C" NOT NULL DEFAULT '{}',
  operator_token_sha256 bytea,                  -- of the OPERATOR_TOKEN that opened it: another value ends it
  source text,
  user_agent text,
  created_at timestamptz NOT NULL DEFAULT now(),
  signed_in_at timestamptz NOT NULL DEFAULT now(), -- the credential was last shown
  last_seen_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  ended_at timestamptz,
  CHECK ((kind = 'operator_token') = (operator_token_sha256 IS NOT NULL))
);
CREATE INDEX operator_sessions_by_actor ON operator_sessions (actor_id) WHERE ended_at IS NULL;
CREATE INDEX operator_sessions_by_end ON operator_sessions (expires_at);

-- What operators did, or were refused. Only codes and ids of ours: nothing about a member. A row is written before its
-- action and never changed; the outcome is a row of its own. An action without an outcome: its process died.
CREATE TABLE audit (
  audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor_kind text NOT NULL,
  actor_id text COLLATE "C" NOT NULL,
  actor_name text NOT NULL,
  source text,                                  -- the address that it came from; NULL: the command line
  request_id text,
  action text NOT NULL,
  location_id text COLLATE "C",
  service_order_id text COLLATE "C",
  webhook_id uuid,
  subject text,                                 -- the id of a token, session or grant; or what a replay of many matched
  before text
);
CREATE INDEX audit_by_order ON audit (service_order_id, audit_id) WHERE service_order_id IS NOT NULL;
CREATE INDEX audit_by_location ON audit (location_id, audit_id) WHERE location_id IS NOT NULL;
CREATE INDEX audit_by_webhook ON audit (webhook_id, audit_id) WHERE webhook_id IS NOT NULL;
CREATE INDEX audit_by_time ON audit (at);

-- The foreign key: no outcome can be written in advance for a later action.
CREATE TABLE audit_outcomes (
  audit_id bigint PRIMARY KEY REFERENCES audit,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  outcome text NOT NULL CHECK (outcome IN ('done', 'refused', 'failed')),
  after text
);

-- The service's role may add to the audit and read it. Only this function deletes, and nothing of the last 30 days.
CREATE FUNCTION expediter.delete_old_audit(kept_days integer) RETURNS bigint
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  deleted bigint;
BEGIN
  IF kept_days < 30 THEN RAISE EXCEPTION 'the audit is kept for 30 days at least: %', kept_days; END IF;
  WITH old AS (
    SELECT audit_id FROM expediter.audit WHERE at < now() - make_interval(days => kept_days) ORDER BY at LIMIT 10000
  ), ends AS (
    DELETE FROM expediter.audit_outcomes o USING old WHERE o.audit_id = old.audit_id
  ), gone AS (
    DELETE FROM expediter.audit a USING old WHERE a.audit_id = old.audit_id RETURNING 1
  )
  SELECT count(*) INTO deleted FROM gone;
  RETURN deleted;
END $$;

REVOKE ALL ON FUNCTION expediter.delete_old_audit(integer) FROM PUBLIC;
