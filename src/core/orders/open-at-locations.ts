import type { Pool } from 'pg';
import type { OpenAtLocation } from '../locations/show-location.ts';
import { NEEDS, NEEDS_READ, RECENT, SILENT_MIN } from './needs-person.ts';
import { droppedLately, silentAmong } from './sample-attention.ts';

const NOTHING: OpenAtLocation = {
  dropped: 0,
  replayedAt: null,
  unreported: 0,
  unreportedSince: null,
  failing: null,
  held: 0,
};

/** Adds to each location what is still open there. */
export async function withOpen<Each extends { locationId: string }>(
  pool: Pool,
  locations: readonly Each[],
): Promise<(Each & { open: OpenAtLocation })[]> {
  const ids = locations.map(({ locationId }) => locationId);
  const { rows } = await pool.query<OpenAtLocation & { locationId: string }>(OPEN, [ids]);
  const found = new Map(rows.map(({ locationId, ...open }) => [locationId, open]));
  return locations.map((each) => ({ ...each, open: found.get(each.locationId) ?? NOTHING }));
}

/** If all locations are silent, each costs the reading of this many orders. */
const OPEN_OF_ONE = 50;
/** The newest open orders of locations that have sent no webhook for some minutes. Others are not silent. */
const OPEN_THERE = `
  SELECT o.* FROM unnest($1::text[]) AS l (location_id)
  CROSS JOIN LATERAL (
    SELECT service_order_id, location_id, integration, rank, requested_at, ended_at FROM orders
    WHERE location_id = l.location_id AND ended_at IS NULL
      AND NOT EXISTS (SELECT FROM location_last_seen h
                      WHERE h.location_id = l.location_id AND h.last_seen_at > now() - interval '${SILENT_MIN} min')
    ORDER BY created_at DESC LIMIT ${OPEN_OF_ONE}) AS o`;

/**
 * The newest orders that did not reach the POS, if none reached it that was signalled later. An order in doubt, or on hold
 * by a pause, says nothing.
 */
const FAILING = `
  WITH unsent AS MATERIALIZED (
    SELECT p.location_id, p.signalled_at, p.cause FROM placements p LEFT JOIN orders o USING (service_order_id)
    WHERE p.state IN ('held', 'failed', 'waiting') AND p.signalled_at > ${RECENT} AND p.location_id = ANY ($1)
      AND (${NEEDS.held} OR ${NEEDS.failed} OR p.state = 'waiting' AND p.problem IS NOT NULL)
    ORDER BY p.signalled_at DESC LIMIT ${NEEDS_READ}
  )
  SELECT u.location_id, json_build_object('orders', count(*), 'cause', (array_agg(u.cause ORDER BY u.signalled_at DESC))[1]) AS failing
  FROM (SELECT DISTINCT location_id FROM unsent) AS l
  -- Once for each location, because all its orders may be unsent.
  LEFT JOIN LATERAL (SELECT signalled_at FROM placements
                     WHERE location_id = l.location_id AND signalled_at > ${RECENT} AND state = 'sent'
                     ORDER BY signalled_at DESC LIMIT 1) AS sent ON true
  JOIN unsent AS u ON u.location_id = l.location_id AND (u.signalled_at <= sent.signalled_at) IS NOT TRUE
  GROUP BY u.location_id`;

const OPEN = `
  WITH RECURSIVE ${droppedLately('location_id = ANY ($1)')}, dropped AS (
    SELECT d.location_id, count(*) FILTER (WHERE ${NEEDS.dropped})::int AS dropped, max(r.at) AS replayed_at
    FROM webhook d
    CROSS JOIN LATERAL (SELECT max(received_at) AS at FROM webhooks r
                        WHERE r.replay_of = d.id AND r.day >= d.day AND r.outcome <> 'dropped') AS r
    GROUP BY 1
  ), silent AS (${silentAmong(OPEN_THERE)}), failing AS (${FAILING}), held AS (
    SELECT p.location_id, count(*)::int AS held
    FROM placements p WHERE p.location_id = ANY ($1) AND ${NEEDS.held} GROUP BY 1
  )
  SELECT location_id AS "locationId", coalesce(dropped, 0) AS dropped, replayed_at AS "replayedAt",
         coalesce(sent, 0)::int AS unreported, oldest AS "unreportedSince", failing, coalesce(held, 0) AS held
  FROM dropped FULL JOIN silent USING (location_id) FULL JOIN failing USING (location_id)
       FULL JOIN held USING (location_id)`;
