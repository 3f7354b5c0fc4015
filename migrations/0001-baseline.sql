-- The tables of the first release. docs/glossary.md explains the words.
--
-- `expediter migrate` first creates the schema `expediter`, then runs this file with `search_path = expediter`. Nothing
-- is in `public`.
--
-- Member data is only in order contents and changes, webhook bodies, reasons, problems, item ids and tracking links. No
-- table has a plain token, password or setting.
--
-- Text in an index is `COLLATE "C"`: Postgres compares it by bytes, whatever the database's collation is. A collation
-- of the operating system or ICU may sort differently after an upgrade. An existing index then misses rows: it allows a
-- second order with the same id, or leaves a webhook without its order. In a measurement, en_US of glibc also cost 15 %
-- of the webhooks per second.

---- Locations

-- Each location's integration and encrypted settings.
CREATE TABLE locations (
  location_id text COLLATE "C" PRIMARY KEY,
  integration text NOT NULL,
  settings text NOT NULL,                       -- a JWE under SETTINGS_KEY
  paused_at timestamptz,                        -- by an operator
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  country text,                                 -- ISO 3166-1 alpha-2, for national telephone numbers; NULL: unknown
  -- A pause by the POS, such as of a busy kitchen, has an end. It is separate from paused_at: the end of one does not
  -- end the other.
  pos_paused_at timestamptz,                    -- NULL: the POS has not paused it
  pos_paused_until timestamptz,                 -- NULL if and only if pos_paused_at is
  pos_said_at timestamptz,                      -- the POS's last report about it; an earlier report changes nothing
  grant_sha256 bytea                            -- the `credentials` of these settings, if their connection may end
);
CREATE INDEX locations_pos_paused ON locations (pos_paused_until) WHERE pos_paused_until IS NOT NULL;
-- A process that has a list of valid tokens in memory, for use while Postgres is away, finds later changes by this
-- index and webhook_tokens_changed. Neither index contains a column that the use of a token changes.
CREATE INDEX locations_changed ON locations (updated_at);

-- Tokens in the URLs of webhooks. The token is printed once and never stored.
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

-- Tokens removed with their location. Processes may still have them in memory. The next removal deletes rows older than
-- a day.
CREATE TABLE removed_tokens (
  sha256 bytea PRIMARY KEY,
  removed_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX removed_tokens_by_time ON removed_tokens (removed_at);

-- When a webhook was last accepted. Written every ten seconds, not with the webhook.
CREATE TABLE location_last_seen (
  location_id text COLLATE "C" PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  integration text NOT NULL,
  last_seen_at timestamptz NOT NULL
);

-- Access that POS systems grant for a limited time. One row for each set of settings that leads to a grant, shared by
-- all locations and processes with these settings.
CREATE TABLE credentials (
  seed_sha256 bytea PRIMARY KEY,                -- integration and settings: other settings get a new row
  integration text NOT NULL,
  "grant" text,                                 -- a JWE under SETTINGS_KEY; NULL until the first grant
  generation integer NOT NULL DEFAULT 0,        -- counts the grants
  expires_at timestamptz,                       -- of the access token
  renewer uuid,                                 -- the lease of the process that requests the next grant
  renewing_until timestamptz,
  granted_at timestamptz,
  lasts_s integer                               -- seconds from the grant to the connection's end; NULL: no end
);

---- Orders on their way to the POS

-- The queue of orders to place. Each row is a job.
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
  requested_at timestamptz,                     -- start of the last request to the POS
  request_ended_at timestamptz,                 -- its end, if known
  provider_order_id text,
  problem text,                                 -- why it waits, is held, is in doubt or failed; for the operator
  finished_at timestamptz,
  pos_account text,                             -- hash of the account that the last createOrder went to
  cause jsonb,                                  -- the problem as data: a code and its details
  missing_since timestamptz,                    -- since when the platform reports that it has no such order
  last_notified_sequence integer NOT NULL DEFAULT 0,     -- the last live message before the first fetch
  polled_at timestamptz,                         -- the last status poll of this order
  polls smallint NOT NULL DEFAULT 0,            -- polls since the last change
  missed smallint NOT NULL DEFAULT 0,           -- polls that reported more than the webhooks
  absent_at timestamptz                         -- an operator saw no ticket then: earlier answers do not count
);
-- A claim goes from location to location and takes the oldest placements of each. Placements that were not fetched yet
-- have no location; together they count as one location.
CREATE INDEX placements_open ON placements (coalesce(location_id, ''), next_attempt_at) WHERE finished_at IS NULL;
-- Finds due placements without reading all locations that have an open order.
CREATE INDEX placements_due ON placements (next_attempt_at) WHERE finished_at IS NULL;
-- Decides whether an unknown POS id at this location may still become ours.
CREATE INDEX placements_without_pos_id ON placements (location_id, requested_at) WHERE provider_order_id IS NULL;
-- Finds orders that were sent recently and may not have been received.
CREATE INDEX placements_sent ON placements (finished_at) WHERE state = 'sent';
-- Operators page through placements, newest first: all, of one location, or by a state other than sent.
CREATE INDEX placements_by_signal ON placements (signalled_at, service_order_id);
CREATE INDEX placements_of_location ON placements (location_id, signalled_at, service_order_id);
CREATE INDEX placements_not_sent ON placements (state, signalled_at, service_order_id) WHERE state <> 'sent';
-- Finds texts to erase: the problems of orders that were never fetched, which have no row in `orders`.
CREATE INDEX placements_to_erase ON placements (finished_at)
  WHERE finished_at IS NOT NULL AND location_id IS NULL AND problem IS NOT NULL;

-- Calls to a POS. Each row is written before its call, so that the call is known even if its process died.
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

-- The queue of known orders to fetch again. One row per order collects its signals. After the fetch the row is deleted,
-- unless another signal came after its claim.
CREATE TABLE refreshes (
  service_order_id text COLLATE "C" PRIMARY KEY,
  signalled_at timestamptz NOT NULL DEFAULT now(),
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  lease_id uuid,
  lease_until timestamptz,
  failures integer NOT NULL DEFAULT 0
);
CREATE INDEX refreshes_by_time ON refreshes (next_attempt_at);

-- Orders to cancel. The order is at its POS, or not placed yet. The row lives as long as the order.
CREATE TABLE cancellations (
  service_order_id text COLLATE "C" PRIMARY KEY,
  location_id text COLLATE "C" NOT NULL,
  requested_by text NOT NULL CHECK (requested_by IN ('platform', 'operator')),
  requested_at timestamptz NOT NULL DEFAULT now(),
  -- due: the request to the POS is due. asked: the POS will answer in a webhook. in_doubt: the answer to a request was
  -- lost, and the request must not be repeated. by_phone: only a person can cancel. cancelled, refused: finished.
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

-- Orders and their status. No index contains a column that a status event changes, and each page has free space, so
-- updates stay HOT.
CREATE TABLE orders (
  service_order_id text COLLATE "C" PRIMARY KEY,
  location_id text COLLATE "C" NOT NULL,
  integration text,                             -- at the last attempt; NULL: the location was not configured
  fulfillment text NOT NULL CHECK (fulfillment IN ('pickup', 'delivery')),
  -- The rank of its status. Ranks are ten apart, which leaves space for new ones.
  rank smallint NOT NULL DEFAULT 0,
  sequence integer NOT NULL DEFAULT 0,          -- its last live message
  failed_by_us boolean NOT NULL DEFAULT false,
  provider_order_id text,                       -- the first POS id that came
  reason text,
  requested_at timestamptz,                     -- when the member wants it
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,
  erased_at timestamptz,                        -- its member data is erased, and none is written again
  left_out jsonb,                               -- parts left out when it was read: codes and paths, no values
  call_out_code text NOT NULL,                  -- the short code that the staff call out
  cancellation text,                            -- shown next to the status; stops further attempts to place it
  -- Why it failed or was cancelled: a code for programs, and our ids of the items that the POS named.
  reason_code text,
  item_ids jsonb,
  -- Estimate as {time of the report, ready, delivered}, so that the newer of two compares as greater.
  estimate timestamptz[],
  -- Courier tracking as {time of the report, link}, so that the newer of two compares as greater. The time has the form
  -- 2027-01-31T18:00:00.000Z, which sorts as text.
  tracking text[] COLLATE "C"
) WITH (fillfactor = 70);
CREATE INDEX orders_open ON orders (location_id, created_at) WHERE ended_at IS NULL;
CREATE INDEX orders_to_erase ON orders (ended_at) WHERE ended_at IS NOT NULL AND erased_at IS NULL;

-- What was ordered, by whom and where to. Only this table names the member. The index below finds all orders of a
-- member, so that they can be erased.
CREATE TABLE order_contents (
  service_order_id text COLLATE "C" PRIMARY KEY,
  contents jsonb NOT NULL
);
CREATE INDEX order_contents_of_member ON order_contents (((contents #>> '{member,id}') COLLATE "C"));

-- Changes by the platform after the POS had the order, by field. May hold member data, and is erased with the contents.
CREATE TABLE order_changes (
  service_order_id text COLLATE "C" NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT now(),
  changes jsonb NOT NULL,
  PRIMARY KEY (service_order_id, seen_at)
);
CREATE INDEX order_changes_by_time ON order_changes (seen_at);

-- The ids that POS systems gave to our orders.
CREATE TABLE provider_orders (
  location_id text COLLATE "C" NOT NULL,
  integration text COLLATE "C" NOT NULL,
  provider_order_id text COLLATE "C" NOT NULL,
  service_order_id text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (location_id, integration, provider_order_id)
);
CREATE INDEX provider_orders_of_order ON provider_orders (service_order_id);
-- The sweep of parked events uses this index to read the few POS ids of the last minute.
CREATE INDEX provider_orders_by_age ON provider_orders (created_at);

-- Number of call-out codes given by a location. The random seed shuffles them, so a code does not show its number.
CREATE TABLE call_outs (
  location_id text COLLATE "C" PRIMARY KEY,
  given integer NOT NULL DEFAULT 0,
  seed integer NOT NULL DEFAULT floor(random() * 2147483648)
) WITH (fillfactor = 70);

---- Statuses

-- Reported statuses, our own decisions, and their outcomes. Append-only, except that the erasure of member data
-- changes reason and item_ids.
CREATE TABLE status_events (
  service_order_id text COLLATE "C" NOT NULL,
  event_id bigint GENERATED ALWAYS AS IDENTITY,
  webhook_id uuid,                              -- NULL: our own decision
  status text NOT NULL,
  native_status text NOT NULL,
  outcome text NOT NULL CHECK (outcome IN ('applied', 'duplicate', 'stale')),
  conflict boolean NOT NULL DEFAULT false,
  sequence integer,                             -- only for an applied event
  provider_order_id text,
  reason text,
  occurred_at timestamptz,
  recorded_at timestamptz NOT NULL DEFAULT now(),
  reason_code text,                             -- this and the next two: as in `orders`
  item_ids jsonb,
  estimate timestamptz[]
);
CREATE INDEX status_events_of_order ON status_events (service_order_id, event_id);
-- The board lists these, newest first. The index covers few rows, so other inserts do not pay for it.
CREATE INDEX status_events_conflicts ON status_events (recorded_at) WHERE conflict;

-- Events with a POS id that is not ours, or not ours yet. One row for each waiting status of a POS id: an order has the
-- highest status that it ever received, so a repeat adds nothing. The row of the webhook says whether its events are
-- parked or unmatched.
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
  reason_details jsonb,                          -- {reasonCode, itemIds}
  estimate timestamptz[],                       -- as in `orders`
  tracking text[] COLLATE "C",                  -- as in `orders`
  PRIMARY KEY (location_id, integration, provider_order_id, rank)
);
CREATE INDEX parked_events_by_age ON parked_events (parked_at);

-- All parked events whose POS id became ours before this time have been applied. One row for all processes. The sweep
-- continues from this time, however long the service was away.
CREATE TABLE parked_sweep (swept_until timestamptz NOT NULL);
INSERT INTO parked_sweep VALUES (now() - interval '1 day');

-- Status polling of POS systems that are silent about an order.
CREATE TABLE location_polls (
  location_id text COLLATE "C" PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  integration text NOT NULL,                    -- the integration of missed_at
  next_poll_at timestamptz NOT NULL,             -- the next poll of any of its orders
  missed_at timestamptz                         -- when a poll last reported more than the webhooks
);

---- Webhooks

-- Webhooks, with headers and body. One partition per UTC day, created in advance and dropped whole.
CREATE TABLE webhooks (
  day date NOT NULL,
  location_id text COLLATE "C" NOT NULL,
  id uuid NOT NULL,                             -- a UUIDv7: sorts by arrival
  integration text NOT NULL,
  received_at timestamptz NOT NULL,
  headers jsonb NOT NULL,                       -- without authorization and cookie
  sealed text,                                  -- a JWE: query and other headers if dropped; a body with our token
  body bytea NOT NULL,
  truncated boolean NOT NULL DEFAULT false,
  events smallint NOT NULL,
  outcome text NOT NULL,
  reason text,
  -- A replay is a separate webhook with the body and headers of its original. A dropped replay has neither.
  replay_of uuid,                               -- the original, also for the replay of a replay
  first_received_at timestamptz,                -- when the original came: signatures are verified for this time
  cause jsonb,                                  -- the reason as data: a code and its details
  -- The answer to a status poll. Its body is the events read in the answer. It has no sender and no signature.
  polled boolean NOT NULL DEFAULT false,
  zstd_of integer,                              -- bytes before zstd by the service; NULL: the body is as received
  PRIMARY KEY (day, location_id, id)
) PARTITION BY RANGE (day);
-- Each of these indexes covers few rows, so other inserts do not pay for it. The first one finds webhooks without an
-- order, which are deleted before their partition is dropped.
CREATE INDEX webhooks_of_no_order ON webhooks (received_at)
  WHERE outcome IN ('ignored', 'unmatched') AND reason IS NULL;
CREATE INDEX webhooks_replays ON webhooks (replay_of) WHERE replay_of IS NOT NULL;
CREATE INDEX webhooks_dropped ON webhooks (location_id, id) WHERE outcome = 'dropped';
CREATE INDEX webhooks_sealed ON webhooks (location_id, id) WHERE sealed IS NOT NULL;
CREATE INDEX webhooks_refused ON webhooks (location_id, received_at) WHERE cause ->> 'code' = 'old_token';

-- The service's role owns nothing. It creates and drops days of webhooks by these functions, which run as the owner.
-- Their search_path finds no object of a caller, and only a granted role may call them.
CREATE FUNCTION expediter.ensure_webhook_partition(day date) RETURNS void
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  child text := 'expediter.webhooks_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF day NOT BETWEEN '2000-01-01' AND '9999-12-30' THEN RAISE EXCEPTION 'no day of webhooks: %', day; END IF;
  -- A table of this name that is no partition is an error below, because webhooks of that day cannot be stored.
  IF EXISTS (SELECT FROM pg_inherits WHERE inhparent = 'expediter.webhooks'::regclass AND inhrelid = to_regclass(child))
  THEN RETURN; END IF;
  -- Created first and then attached, it blocks no webhook; CREATE TABLE PARTITION OF would.
  EXECUTE format('CREATE TABLE %s (LIKE expediter.webhooks INCLUDING ALL)', child);
  EXECUTE format('ALTER TABLE expediter.webhooks ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)',
                 child, to_char(day, 'YYYY-MM-DD'), to_char(day + 1, 'YYYY-MM-DD'));
END $$;

-- Drops a day. While it waits for its lock, webhooks queue behind it. So its time-out is shorter than theirs, and a
-- later round tries again. It refuses to drop days within the minimum of WEBHOOK_RETENTION_DAYS, which is 2.
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
  LOCK TABLE ONLY expediter.webhooks IN ACCESS EXCLUSIVE MODE;
  -- With the parent's lock held, it waits for nothing more.
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', child);
  EXECUTE format('DROP TABLE %s', child);
  RETURN true;
END $$;

REVOKE ALL ON FUNCTION expediter.ensure_webhook_partition(date), expediter.drop_webhook_partition(date) FROM PUBLIC;

-- Stored bytes of dropped webhooks whose sender is not proven. Above DROPPED_QUOTA, webhooks are counted and not stored.
-- One row per location, for the last day that had any, written periodically.
CREATE TABLE dropped_bytes (
  location_id text COLLATE "C" PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  day date NOT NULL,                            -- in UTC
  bytes bigint NOT NULL,                        -- taken from the quota, some of it in advance
  not_stored bigint NOT NULL DEFAULT 0          -- webhooks that have no row in `webhooks`
) WITH (fillfactor = 70);

-- Stored bytes of webhooks with an old token. It is a separate quota, so that the holder of a revoked token uses no
-- quota of other senders.
CREATE TABLE refused_bytes (
  location_id text COLLATE "C" PRIMARY KEY REFERENCES locations ON DELETE CASCADE,
  day date NOT NULL,
  bytes bigint NOT NULL,
  not_stored bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);

---- Live messages

-- Live messages to publish.
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
  -- When its webhook first came, if it was applied later: by a replay, or after a wait for its POS id.
  first_received_at timestamptz,
  PRIMARY KEY (service_order_id, sequence)
);
CREATE INDEX outbox_by_age ON outbox (applied_at);

-- Published live messages. They moved here from the outbox, and members can see them. No member data.
CREATE TABLE live_messages (
  service_order_id text COLLATE "C" NOT NULL,
  sequence integer NOT NULL,
  rank smallint NOT NULL,
  applied_at timestamptz NOT NULL,
  published_at timestamptz NOT NULL DEFAULT now(),
  provider_order_id text,                       -- sent to the followers of an order, as in the topic
  first_received_at timestamptz,                -- as in `outbox`
  PRIMARY KEY (service_order_id, sequence)
);
-- Finds new messages for the followers of an order.
CREATE INDEX live_messages_by_time ON live_messages (published_at);

-- Where the numbers of live messages continue after a restore: above this one. Empty without a restore.
CREATE TABLE sequence_floor (
  id boolean PRIMARY KEY DEFAULT true CHECK (id),
  floor integer NOT NULL
);

-- Orders whose estimate needs a separate message. The row stays for a minute after the message, to prevent a second
-- message in that time.
CREATE TABLE estimates_due (
  service_order_id text COLLATE "C" PRIMARY KEY,
  sequence integer,                             -- that the order had then; NULL: no message is due
  due_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX estimates_due_by_time ON estimates_due (due_at);

-- Processes through which members follow orders now. While orders are followed, each process writes its changes every
-- few seconds. Rows of a process without a beat for 30 s do not count. The tables are not UNLOGGED, because a standby
-- could not read them. No member data.
CREATE TABLE following_processes (
  process uuid PRIMARY KEY,
  beat_at timestamptz NOT NULL
);
-- Orders that members follow now.
CREATE TABLE followed_orders (
  service_order_id text COLLATE "C" NOT NULL,
  process uuid NOT NULL REFERENCES following_processes ON DELETE CASCADE,
  PRIMARY KEY (service_order_id, process)
);

---- Charts

-- Traffic in each minute of the last day. Every process adds its counts every ten seconds. No member data, no order id.
-- The pages have free space, so that updates of a row within its minute stay HOT.
CREATE TABLE traffic (
  location_id text COLLATE "C" NOT NULL,        -- '': all locations of the integration, also unknown ones
  minute timestamptz NOT NULL,
  integration text COLLATE "C" NOT NULL,
  what text COLLATE "C" NOT NULL,               -- webhook, placement, live
  outcome text COLLATE "C" NOT NULL,
  count integer NOT NULL,
  latencies integer[],                          -- counts by LATENCY_BOUNDS; NULL without durations
  PRIMARY KEY (location_id, minute, integration, what, outcome)
) WITH (fillfactor = 70);
CREATE INDEX traffic_by_minute ON traffic (minute);

-- The results of each hour's orders, for the vendors' scorecards. Every ten minutes the last hours are computed again
-- from the stored orders. No member data.
CREATE TABLE scorecard_hours (
  location_id text COLLATE "C" NOT NULL,        -- '': all locations of the integration
  integration text COLLATE "C" NOT NULL,
  hour timestamptz NOT NULL,                    -- when the orders were signalled
  orders integer NOT NULL,
  acceptance integer[] NOT NULL,                -- from the ticket to the POS's first status; counts by LATENCY_BOUNDS
  missing integer NOT NULL,                     -- statuses that only a poll found
  duplicates integer NOT NULL,
  late integer NOT NULL,                        -- stale: a later status was known already
  conflicts integer NOT NULL,
  refusals jsonb NOT NULL,                      -- failed or held orders, by cause code
  down_minutes integer NOT NULL,                -- minutes with calls to the POS, none of them answered
  PRIMARY KEY (location_id, integration, hour)
);
CREATE INDEX scorecard_hours_by_hour ON scorecard_hours (hour);

-- When the last hours were computed.
CREATE TABLE scorecard_scored (scored_at timestamptz NOT NULL);
INSERT INTO scorecard_scored VALUES (now() - interval '1 h');

---- Operators: permissions and audit. Only the SHA-256 of a credential is stored.

-- Named tokens for programs, or for people without OIDC.
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

-- Roles of people who sign in by OIDC, by address or group.
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

-- Browsers that signed in. The cookie of each is 32 random bytes.
CREATE TABLE operator_sessions (
  session_id uuid PRIMARY KEY,
  sha256 bytea NOT NULL UNIQUE,
  kind text NOT NULL CHECK (kind IN ('person', 'token', 'operator_token')),
  actor_id text COLLATE "C" NOT NULL,           -- a person's issuer and subject, or a token's id
  name text NOT NULL,
  email text COLLATE "C" CHECK (email = lower(email)), -- verified by the issuer
  groups text[] COLLATE "C" NOT NULL DEFAULT '{}',
  operator_token_sha256 bytea,                  -- the OPERATOR_TOKEN that was used: another value ends it
  source text,
  user_agent text,
  created_at timestamptz NOT NULL DEFAULT now(),
  signed_in_at timestamptz NOT NULL DEFAULT now(), -- last use of the credential
  last_seen_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  ended_at timestamptz,
  CHECK ((kind = 'operator_token') = (operator_token_sha256 IS NOT NULL))
);
CREATE INDEX operator_sessions_by_actor ON operator_sessions (actor_id) WHERE ended_at IS NULL;
CREATE INDEX operator_sessions_by_end ON operator_sessions (expires_at);

-- Operators' actions and refused attempts. Only our codes and ids, no member data. A row is written before its action
-- and never changed. The outcome is a separate row. If it is missing, the action is running or its process died.
CREATE TABLE audit (
  audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor_kind text NOT NULL,
  actor_id text COLLATE "C" NOT NULL,
  actor_name text NOT NULL,
  source text,                                  -- client address; NULL: the command line
  request_id text,
  action text NOT NULL,
  location_id text COLLATE "C",
  service_order_id text COLLATE "C",
  webhook_id uuid,
  subject text,                                 -- the id of a token, session or grant; or a replay's filter
  before text
);
CREATE INDEX audit_by_order ON audit (service_order_id, audit_id) WHERE service_order_id IS NOT NULL;
CREATE INDEX audit_by_location ON audit (location_id, audit_id) WHERE location_id IS NOT NULL;
CREATE INDEX audit_by_webhook ON audit (webhook_id, audit_id) WHERE webhook_id IS NOT NULL;
CREATE INDEX audit_by_time ON audit (at);

-- Outcomes of those actions. Because of the foreign key, nobody can write the outcome of an action before the action.
CREATE TABLE audit_outcomes (
  audit_id bigint PRIMARY KEY REFERENCES audit,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  outcome text NOT NULL CHECK (outcome IN ('done', 'refused', 'failed')),
  after text
);

-- The service's role may add to the audit and read it. Only this function deletes, and only rows older than 30 days.
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
