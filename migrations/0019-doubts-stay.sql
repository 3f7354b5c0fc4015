-- Why the order fails once its ticket is certainly gone: the reason for the member, and codes. NULL: it is cancelled.
ALTER TABLE cancellations ADD COLUMN fails_with jsonb;

-- An order that may have a ticket is in doubt, also at a POS that deduplicates. The versions before left it waiting there
-- after a 5xx or a 408.
UPDATE placements p
SET state = 'in_doubt', doubt_since = now(), request_ended_at = coalesce(request_ended_at, now())
WHERE finished_at IS NULL AND state IN ('waiting', 'held')
  AND EXISTS (SELECT FROM placement_attempts a
              WHERE a.service_order_id = p.service_order_id AND a.call = 'createOrder'
                AND (a.http_status >= 500 OR a.http_status = 408)
                AND a.started_at > coalesce(p.absent_at, '-infinity'));

-- A doubt is left only by a ticket (the state `sent`), by a person, who sets `absent_at`, or by a POS that was asked a
-- minute after the last request and did not have the order. A statement that only forgets the doubt changes the rest.
CREATE FUNCTION expediter.keep_doubt() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (
    SELECT FROM expediter.placement_attempts a
    WHERE a.service_order_id = NEW.service_order_id
      -- A cancel ends in the same statement, which does not see its end.
      AND (a.outcome = 'absent' OR a.call = 'cancelOrder' AND a.ended_at IS NULL)
      AND a.started_at >= coalesce(OLD.request_ended_at, OLD.signalled_at) + interval '60 s'
      AND NOT EXISTS (SELECT FROM expediter.placement_attempts later
                      WHERE later.service_order_id = NEW.service_order_id AND later.call = 'createOrder'
                        AND later.attempt > a.attempt)
  ) THEN
    RETURN NEW;
  END IF;
  IF NEW.finished_at IS NOT NULL THEN
    RAISE EXCEPTION 'order % may have a ticket, so it does not become %', NEW.service_order_id, NEW.state;
  END IF;
  NEW.state := OLD.state;
  NEW.doubt_since := OLD.doubt_since;
  RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION expediter.keep_doubt() FROM PUBLIC;

CREATE TRIGGER keep_doubt BEFORE UPDATE OF state ON placements FOR EACH ROW
  WHEN (OLD.state = 'in_doubt' AND NEW.state NOT IN ('in_doubt', 'sent') AND NEW.absent_at IS NOT DISTINCT FROM OLD.absent_at)
  EXECUTE FUNCTION expediter.keep_doubt();
