import type { Pool } from 'pg';
import { RANK_SENT, rankOf } from '../domain/lifecycle.ts';
import { ESTIMATED_AT } from '../live/outbox.ts';
import type { CanonicalOrder } from '../domain/order.ts';
import { LOCK_POLL } from '../postgres/transactions.ts';

/** An order that is quieter than it should be. Its location is not asked about another one for a minute. */
export type QuietOrder = {
  serviceOrderId: string;
  locationId: string;
  integration: string;
  providerOrderId: string | null;
  order: CanonicalOrder;
};

/** Seconds between two questions at one location. */
const EACH_S = 60;
/** Seconds after which a POS should have said that it has the order. */
const UNRECEIVED_S = 180;
/** Seconds after its time at which an order is late, and after any news before it counts as quiet again. */
const LATE_S = 300;
/** Seconds within which an order without a wanted time is mostly over. */
const SOON_S = 3_600;
/** Seconds without a webhook, and without news of an order, after which a location is silent. A long roast is shorter. */
const SILENT_S = 1_800;
/** Seconds within which another location has been heard, so that its vendor is not silent as a whole. */
const HEARD_S = 300;
/** Seconds for which a location that missed webhooks is asked about all its orders, each minute about the next. */
const MISSING_S = 3_600;
/** Seconds after which an order of such a location is quiet again: before its next turn, or that went to another one. */
const NEWS_S = 30;
/** The longest time between two questions about an order without news: each is twice the one before, from two minutes on. */
const REST_MAX_S = 3_600;

/**
 * Claims orders that are quieter than they should be, at most one of each location: sent and not received, past their
 * time and not ended, of a location that alone of its vendor is silent, or of one whose webhooks are known to be missing.
 * A claim is the location's turn, and counts as asked: nobody else asks there for a minute. While another process looks,
 * nothing is found here.
 * @param integrations those that can be asked now
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

/** Most open orders need no question. The others are found by their own rows, before any join. */
const CLAIM = `
  WITH turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(${LOCK_POLL}) AS mine
  ), missing AS MATERIALIZED (
    SELECT ARRAY(SELECT location_id FROM location_polls
                 WHERE missed_at > now() - interval '${MISSING_S} s') AS locations
  ), suspect AS MATERIALIZED (
    SELECT * FROM orders o
    WHERE (SELECT mine FROM turn) AND o.ended_at IS NULL AND o.rank >= ${RANK_SENT} AND o.integration = ANY ($1::text[])
      AND o.updated_at < now() - interval '${NEWS_S} s'
      AND (${IS_UNRECEIVED} OR ${IS_LATE} OR o.updated_at < now() - interval '${SILENT_S} s'
           OR o.location_id = ANY ((SELECT locations FROM missing)::text[]))
  ), quiet AS MATERIALIZED (
    SELECT DISTINCT ON (o.location_id) o.location_id, o.integration, o.service_order_id, o.provider_order_id,
           o.updated_at, rests_until
    FROM suspect o
    JOIN locations l ON l.location_id = o.location_id AND l.integration = o.integration
    JOIN placements p ON p.service_order_id = o.service_order_id
    LEFT JOIN location_polls a ON a.location_id = o.location_id
    LEFT JOIN location_last_seen s ON s.location_id = o.location_id AND s.integration = o.integration
    CROSS JOIN LATERAL (
      SELECT coalesce(a.integration = o.integration AND a.missed_at > now() - interval '${MISSING_S} s', false)
               AS is_missing,
             -- NULL where there was news since it was asked about.
             CASE WHEN p.polled_at > o.updated_at
                  THEN p.polled_at + least(${EACH_S} * 2 ^ p.polls, ${REST_MAX_S}) * interval '1 s' END AS rests_until
    ) AS about
    WHERE EXISTS (SELECT FROM order_contents c WHERE c.service_order_id = o.service_order_id) -- else it is erased
      AND (a.next_poll_at IS NULL OR a.next_poll_at <= now())
      AND (is_missing
           OR (rests_until IS NULL OR rests_until < now())
           AND (${IS_UNRECEIVED} OR ${IS_LATE}
                OR greatest(o.updated_at, s.last_seen_at) < now() - interval '${SILENT_S} s'
                   AND EXISTS (SELECT FROM location_last_seen other
                               WHERE other.integration = o.integration
                                 AND other.last_seen_at > now() - interval '${HEARD_S} s')))
    -- One that has had nothing new for some time leaves its turn to others.
    ORDER BY o.location_id, rests_until NULLS FIRST, o.updated_at
  ), claimed AS (
    INSERT INTO location_polls AS a (location_id, integration, next_poll_at)
    SELECT location_id, integration, now() + interval '${EACH_S} s'
    FROM (SELECT * FROM quiet ORDER BY rests_until NULLS FIRST, updated_at LIMIT $2::int) AS first
    ORDER BY location_id
    ON CONFLICT (location_id) DO UPDATE
      SET missed_at = CASE WHEN a.integration = excluded.integration THEN a.missed_at END,
          integration = excluded.integration, next_poll_at = excluded.next_poll_at
      -- Another process was quicker.
      -- guard: polled-once
      WHERE a.next_poll_at <= now()
    RETURNING location_id
  ), noted AS (
    UPDATE placements p
    SET polled_at = now(),
        polls = CASE WHEN p.polled_at <= quiet.updated_at THEN 1 ELSE least(p.polls + 1, 15) END -- the power of it is a rest
    FROM quiet JOIN claimed USING (location_id)
    WHERE p.service_order_id = quiet.service_order_id
  )
  SELECT quiet.location_id AS "locationId", quiet.integration, quiet.service_order_id AS "serviceOrderId",
         quiet.provider_order_id AS "providerOrderId", c.contents AS "order"
  FROM claimed JOIN quiet USING (location_id) JOIN order_contents c USING (service_order_id)`;
