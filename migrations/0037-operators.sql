-- Who may use the operators' doors, and what they did. Of every credential only its SHA-256 is here.

-- A named token, for a program or for a person where there is no OIDC.
CREATE TABLE operator_tokens (
  token_id uuid PRIMARY KEY,
  sha256 bytea NOT NULL UNIQUE,
  name text COLLATE "C" NOT NULL,
  roles text[] NOT NULL CHECK (cardinality(roles) > 0),
  locations text[] CHECK (cardinality(locations) > 0), -- NULL: all of them
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
CREATE UNIQUE INDEX operator_tokens_by_name ON operator_tokens (name) WHERE revoked_at IS NULL;

-- What a person may do who signs in by OIDC: given to an address, or to all of a group.
CREATE TABLE operator_grants (
  grant_id uuid PRIMARY KEY,
  email text COLLATE "C" CHECK (email = lower(email)),
  group_name text COLLATE "C",
  roles text[] NOT NULL CHECK (cardinality(roles) > 0),
  locations text[] CHECK (cardinality(locations) > 0), -- NULL: all of them
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK (num_nonnulls(email, group_name) = 1)
);
CREATE INDEX operator_grants_by_email ON operator_grants (email);
CREATE INDEX operator_grants_by_group ON operator_grants (group_name);

-- A browser that signed in. The cookie is 32 random bytes, of which this has the SHA-256.
CREATE TABLE operator_sessions (
  session_id uuid PRIMARY KEY,
  sha256 bytea NOT NULL UNIQUE,
  kind text NOT NULL CHECK (kind IN ('person', 'token', 'operator_token')),
  actor_id text COLLATE "C" NOT NULL,     -- of a person the issuer and its subject; the id of a token
  name text NOT NULL,
  email text COLLATE "C" CHECK (email = lower(email)), -- verified by the issuer
  groups text[] COLLATE "C" NOT NULL DEFAULT '{}',
  operator_token_sha256 bytea,            -- of the OPERATOR_TOKEN that opened it: another one ends it
  source text,
  user_agent text,
  created_at timestamptz NOT NULL DEFAULT now(),
  signed_in_at timestamptz NOT NULL DEFAULT now(), -- the credential was shown last
  last_seen_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  ended_at timestamptz,
  CHECK ((kind = 'operator_token') = (operator_token_sha256 IS NOT NULL))
);
CREATE INDEX operator_sessions_by_actor ON operator_sessions (actor_id) WHERE ended_at IS NULL;
CREATE INDEX operator_sessions_by_end ON operator_sessions (expires_at);

-- What operators did, and were refused. Codes and ids of ours: nothing of a member. A row is written before its act and
-- is never changed; how the act ended is a row of its own. An act without one: its process died.
CREATE TABLE audit (
  audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor_kind text NOT NULL,
  actor_id text COLLATE "C" NOT NULL,
  actor_name text NOT NULL,
  source text,                            -- the address it came from; NULL for the command line
  request_id text,
  did text NOT NULL,
  location_id text COLLATE "C",
  service_order_id text COLLATE "C",
  webhook_id uuid,
  subject text,                           -- the id of a token, session or grant; what a replay of many matched
  before text
);
CREATE INDEX audit_by_order ON audit (service_order_id, audit_id) WHERE service_order_id IS NOT NULL;
CREATE INDEX audit_by_location ON audit (location_id, audit_id) WHERE location_id IS NOT NULL;
CREATE INDEX audit_by_webhook ON audit (webhook_id, audit_id) WHERE webhook_id IS NOT NULL;
CREATE INDEX audit_by_time ON audit (at);

CREATE TABLE audit_outcomes (
  audit_id bigint PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  outcome text NOT NULL CHECK (outcome IN ('done', 'refused', 'failed')),
  after text
);

-- The service's role may add to the audit and read it. What is old goes by this alone, and nothing of the last 30 days.
DO $do$
BEGIN
  EXECUTE replace($sql$
    CREATE FUNCTION {schema}.delete_old_audit(kept_days integer) RETURNS bigint
    LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
    DECLARE
      deleted bigint;
    BEGIN
      IF kept_days < 30 THEN RAISE EXCEPTION 'the audit is kept for 30 days at least: %', kept_days; END IF;
      WITH old AS (
        SELECT audit_id FROM {schema}.audit WHERE at < now() - make_interval(days => kept_days) ORDER BY at LIMIT 10000
      ), ends AS (
        DELETE FROM {schema}.audit_outcomes o USING old WHERE o.audit_id = old.audit_id
      ), gone AS (
        DELETE FROM {schema}.audit a USING old WHERE a.audit_id = old.audit_id RETURNING 1
      )
      SELECT count(*) INTO deleted FROM gone;
      RETURN deleted;
    END $body$;

    REVOKE ALL ON FUNCTION {schema}.delete_old_audit(integer) FROM PUBLIC;
  $sql$, '{schema}', (SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'webhooks'::regclass));
END $do$;
