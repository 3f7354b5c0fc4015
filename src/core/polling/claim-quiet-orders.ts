import type { Pool } from 'pg';
import { RANK_SENT, rankOf } from '../domain/lifecycle.ts';
import { ESTIMATED_AT } from '../live/outbox.ts';
import type { CanonicalOrder } from '../domain/order.ts';
import { LOCK_POLL } from '../postgres/transactions.ts';

/** A claimed order with fewer status events than expected. Its location is not polled again for POLL_INTERVAL_S. */
export type QuietOrder = {
  serviceOrderId: string;
  locationId: string;
  integration: string;
  providerOrderId: string | null;
  order: CanonicalOrder;
};

/** Seconds between two polls of one location. */
const POLL_INTERVAL_S = 60;
/** Seconds after which a POS should have reported that it received the order. */
const UNRECEIVED_S = 180;
/** Seconds after which an order is late. They count from its expected time or its last news, whichever is later. */
const LATE_S = 300;
/** Seconds within which most orders without a requested time are done. */
const SOON_S = 3_600;
/** A location is silent after this many seconds without webhooks and news of the order. A long roast takes less. */
const SILENT_S = 1_800;
/** The vendor is not silent if another of its locations has sent a webhook within this many seconds. */
const HEARD_S = 300;
/** Seconds after a missing webhook during which all orders of its location are polled, one order each minute. */
const MISSING_POLLS_S = 3_600;
/** Seconds without news before an order may be polled: fewer than POLL_INTERVAL_S, so that no poll is skipped. */
const NEWS_S = 30;
/** Polls of an order without news are two minutes apart at first. Each poll doubles the time, up to this maximum. */
const PAUSE_MAX_S = 3_600;

/**
 * Claims quiet orders, at most one per location. An order is quiet if the POS has not confirmed it, if it is late, if
 * its location is silent but its vendor is not, or if webhooks of its location are missing. A claim counts as a poll:
 * no process polls that location again for a minute. Returns none while another process runs this query.
 * @param integrations the integrations that can be polled now
 */
export async function claimQuietOrders(
  pool: Pool,
  integrations: readonly string[],
  limit: number,
): Promise<QuietOrder[]> {
  const { rows } = await pool.query<QuietOrder>({
    name: 'claim-quiet-orders',
    text: CLAIM,
    values: [integrations, limit],
  });
  return rows;
}

const IS_UNRECEIVED = `o.rank < ${rankOf('received')} AND o.updated_at < now() - interval '${UNRECEIVED_S} s'`;
const IS_LATE = `
  greatest(coalesce(${ESTIMATED_AT}, o.requested_at, o.created_at + interval '${SOON_S} s'), o.updated_at)
    < now() - interval '${LATE_S} s'`;

/** Most open orders need no poll. `suspect` selects the others from `orders` alone, before any join. */
const CLAIM = `
  WITH turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(${LOCK_POLL}) AS mine
  ), missing AS MATERIALIZED (
    SELECT ARRAY(SELECT location_id FROM location_polls
                 WHERE missed_at > now() - interval '${MISSING_POLLS_S} s') AS locations
  ), suspect AS MATERIALIZED (
    SELECT * FROM orders o
    WHERE (SELECT mine FROM turn) AND o.ended_at IS NULL AND o.rank >= ${RANK_SENT} AND o.integration = ANY ($1::text[])
      AND o.updated_at < now() - interval '${NEWS_S} s'
      AND (${IS_UNRECEIVED} OR ${IS_LATE} OR o.updated_at < now() - interval '${SILENT_S} s'
           OR o.location_id = ANY ((SELECT locations FROM missing)::text[]))
  ), quiet AS MATERIALIZED (
    SELECT * FROM (
      SELECT DISTINCT ON (o.location_id) o.location_id, o.integration, o.service_order_id, o.provider_order_id,
             o.updated_at, rests_until
      FROM suspect o
      -- OFFSET 0 forces index lookups: a plan cached while a table was empty would scan it for each order.
      CROSS JOIN LATERAL (SELECT * FROM locations WHERE location_id = o.location_id OFFSET 0) AS l
      -- guard: quiet-by-index
      CROSS JOIN LATERAL (SELECT * FROM placements WHERE service_order_id = o.service_order_id OFFSET 0) AS p
      LEFT JOIN LATERAL (SELECT * FROM location_polls WHERE location_id = o.location_id OFFSET 0) AS a ON true
      LEFT JOIN LATERAL (SELECT * FROM location_last_seen WHERE location_id = o.location_id OFFSET 0) AS s
        ON s.integration = o.integration
      CROSS JOIN LATERAL (
        SELECT coalesce(a.integration = o.integration AND a.missed_at > now() - interval '${MISSING_POLLS_S} s', false)
                 AS is_missing,
               -- NULL if there was news since the last poll.
               CASE WHEN p.polled_at > o.updated_at
                    THEN p.polled_at + least(${POLL_INTERVAL_S} * 2 ^ p.polls, ${PAUSE_MAX_S}) * interval '1 s' END AS rests_until
      ) AS about
      WHERE l.integration = o.integration AND o.erased_at IS NULL AND (a.next_poll_at IS NULL OR a.next_poll_at <= now())
        AND (is_missing
             OR (rests_until IS NULL OR rests_until < now())
             AND (${IS_UNRECEIVED} OR ${IS_LATE}
                  OR greatest(o.updated_at, s.last_seen_at) < now() - interval '${SILENT_S} s'
                     AND o.integration = ANY (ARRAY(
                       SELECT DISTINCT integration FROM location_last_seen
                       WHERE last_seen_at > now() - interval '${HEARD_S} s'))))
      -- Orders without news at their last polls come last.
      ORDER BY o.location_id, rests_until NULLS FIRST, o.updated_at
    ) AS one_each ORDER BY rests_until NULLS FIRST, updated_at LIMIT $2::int
  ), claimed AS (
    INSERT INTO location_polls AS a (location_id, integration, next_poll_at)
    SELECT location_id, integration, now() + interval '${POLL_INTERVAL_S} s'
    FROM quiet ORDER BY location_id
    ON CONFLICT (location_id) DO UPDATE
      SET missed_at = CASE WHEN a.integration = excluded.integration THEN a.missed_at END,
          integration = excluded.integration, next_poll_at = excluded.next_poll_at
      -- Another process may have been faster.
      -- guard: polled-once
      WHERE a.next_poll_at <= now()
    RETURNING location_id
  ), noted AS (
    UPDATE placements p
    SET polled_at = now(),
        polls = CASE WHEN p.polled_at <= (SELECT updated_at FROM quiet WHERE quiet.service_order_id = p.service_order_id)
                     THEN 1 ELSE least(p.polls + 1, 15) END -- limits the exponent of the pause
    WHERE service_order_id = ANY (ARRAY(SELECT service_order_id FROM quiet JOIN claimed USING (location_id)))
  )
  SELECT quiet.location_id AS "locationId", quiet.integration, quiet.service_order_id AS "serviceOrderId",
         quiet.provider_order_id AS "providerOrderId", c.contents AS "order"
  FROM claimed JOIN quiet USING (location_id)
  CROSS JOIN LATERAL (SELECT * FROM order_contents WHERE service_order_id = quiet.service_order_id OFFSET 0) AS c`;
