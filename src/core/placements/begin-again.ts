/**
 * SQL that begins the placement of an order ($1) again, with its whole time before it, if it failed before it was ever
 * read: no ticket can exist. Its member was told `failed`, and the messages to come have higher sequences. A placement
 * that was never read has the deadline that its signal gave it.
 */
export const BEGIN_AGAIN = `
  UPDATE placements
  SET state = 'waiting', problem = NULL, cause = NULL, failures = 0, missing_since = NULL, finished_at = NULL,
      signalled_at = now(), deadline_at = now() + (deadline_at - signalled_at), next_attempt_at = now()
  WHERE service_order_id = $1 AND state = 'failed'
    AND NOT EXISTS (SELECT FROM orders o WHERE o.service_order_id = $1)`;
