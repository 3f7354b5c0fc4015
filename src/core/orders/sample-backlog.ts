import { PARK_TTL_S } from '../statuses/apply-events.ts';
import { IS_ILL } from '../live/status-endpoint.ts';
import type { Pool } from 'pg';
import { OLDEST_WAITING } from '../live/outbox.ts';
import { UNREPORTED } from '../transitions/placement-sql.ts';
import type { Availability } from '../domain/availability.ts';
import { NEEDS, PAUSED, SENT_LONG_AGO } from './needs-person.ts';

/** Waiting work and its age. Counts stop at a maximum. `unreceived` covers only the orders that were sent last. */
export type Backlog = {
  waiting: number;
  /** Held placements that need an operator. The others wait for the end of a pause, and count as `paused`. */
  held: number;
  paused: number;
  inDoubt: number;
  /** Placements in doubt that need an operator. */
  forOperator: number;
  /** Orders that only a person can cancel. */
  byPhone: number;
  /** Placements held until a person renews the connection to the POS. */
  reconnectNeeded: number;
  /** Seconds of PLACEMENT_DEADLINE_S that the most urgent waiting placement has used up. 0 if none waits. */
  oldestWaiting: number;
  /** Orders sent 5 to 60 minutes ago and wanted within the hour, for which the POS has reported nothing. */
  unreceived: number;
  /** Seconds since the oldest unpublished live message was applied; 0 if there is none. */
  oldestUnpublished: number;
  /** Seconds since STATUS_WEBHOOK_URL began to fail; 0 if it works. */
  webhookFailing: number;
  /** 1 if STATUS_WEBHOOK_URL is stopped. */
  webhookStopped: number;
  /** Events that wait for their POS id to become ours, at locations where that is still possible. */
  parked: number;
  /** By integration, the seconds since the last webhook of any location. */
  silent: Record<string, number>;
  /**
   * By integration, the seconds until the first location loses its connection to the POS, if nobody renews it. Negative if
   * a location has lost it.
   */
  lasts: Record<string, number>;
  /** Locations by the state of their kitchen. */
  kitchens: Partial<Record<Availability['state'], number>>;
  /** Unfinished placements by group of locations and by state: at most GROUPED. */
  groups: { group: string; state: string; count: number }[];
  /** In the last hour: the most reads of member data by one operator, new admin roles, actions with OPERATOR_TOKEN. */
  actions: { memberData: number; admin: number; operatorToken: number };
};

/** Maximum of rows read, so that sampling a large backlog does not slow down its processing. */
const OPEN = 10_000;
const SENT = 5_000;
const PARKED = 10_000;
const ACTS = 10_000;
const GROUPED = 1_000;

/**
 * Samples the backlog with index scans that read a limited number of rows.
 * @param config.PLACEMENT_DEADLINE_S seconds for which an order is worth placing
 */
export async function sampleBacklog(
  pool: Pool,
  { PLACEMENT_DEADLINE_S }: { PLACEMENT_DEADLINE_S: number },
): Promise<Backlog> {
  const { rows } = await pool.query<Backlog>({
    name: 'sample-backlog',
    text: SAMPLE_BACKLOG,
    values: [PLACEMENT_DEADLINE_S],
  });
  if (rows[0] === undefined) throw new Error('Postgres did not answer');
  return rows[0];
}

export const SAMPLE_BACKLOG = `
  WITH actions AS (
    SELECT coalesce(max(looks), 0) AS looks, coalesce(sum(by_token), 0) AS by_token
    FROM (SELECT count(*) FILTER (WHERE action IN ('read contents', 'read webhook', 'search member')) AS looks,
                 count(*) FILTER (WHERE actor_kind = 'operator_token') AS by_token
          FROM (SELECT actor_kind, actor_id, action FROM audit WHERE at > now() - interval '1 h' ORDER BY at DESC LIMIT ${ACTS}) AS a
          GROUP BY actor_kind, actor_id) AS a
  ), unfinished AS (
    SELECT service_order_id, location_id, state, next_attempt_at, cause, deadline_at, finished_at
    FROM placements
    WHERE finished_at IS NULL
    ORDER BY coalesce(location_id, ''), next_attempt_at LIMIT ${OPEN}
  ), open AS (
    SELECT count(*) FILTER (WHERE state = 'waiting')::int AS "waiting",
           count(*) FILTER (WHERE ${NEEDS.held})::int AS "held",
           count(*) FILTER (WHERE state = 'held' AND ${PAUSED})::int AS "paused",
           count(*) FILTER (WHERE state = 'in_doubt')::int AS "inDoubt",
           count(*) FILTER (WHERE ${NEEDS.in_doubt})::int AS "forOperator",
           count(*) FILTER (WHERE state = 'held' AND cause ->> 'code' = 'reconnect_needed')::int AS "reconnectNeeded",
           -- At least 0: a scheduled order, or an order of a location that was paused, has a later deadline.
           greatest(0, $1::int - extract(epoch FROM min(deadline_at)
             FILTER (WHERE state = 'waiting' OR state = 'in_doubt' AND next_attempt_at < 'infinity') - now()))::float8
             AS "oldestWaiting"
    FROM unfinished p
  )
  SELECT open.*,
         (SELECT count(*)::int
          FROM (SELECT FROM cancellations c WHERE ${NEEDS.cancel_by_phone} LIMIT ${OPEN}) AS c) AS "byPhone",
         (SELECT count(*)::int
          FROM (SELECT service_order_id FROM placements p
                WHERE ${SENT_LONG_AGO} AND finished_at > now() - interval '1 h'
                ORDER BY finished_at DESC LIMIT ${SENT}) AS p
          CROSS JOIN LATERAL (SELECT o.rank, o.ended_at, o.requested_at FROM orders o
                              WHERE o.service_order_id = p.service_order_id OFFSET 0) AS o
          WHERE ${UNREPORTED}) AS "unreceived",
         coalesce((SELECT extract(epoch FROM now() - ${OLDEST_WAITING})), 0)::float8
           AS "oldestUnpublished",
         coalesce(endpoint.failing, 0)::float8 AS "webhookFailing", coalesce(endpoint.stopped, 0) AS "webhookStopped",
         -- If no placement at the location can still get the POS id, the event is about an order made at the till.
         (SELECT coalesce(sum(e.events), 0)::int
          FROM (SELECT location_id, count(*) AS events
                FROM (SELECT location_id FROM parked_events WHERE parked_at > now() - make_interval(secs => ${PARK_TTL_S})
                      ORDER BY parked_at DESC LIMIT ${PARKED}) AS e
                GROUP BY location_id) AS e
          WHERE (SELECT true FROM placements p
                 WHERE p.location_id = e.location_id AND p.provider_order_id IS NULL
                   AND p.requested_at > now() - make_interval(secs => ${PARK_TTL_S}) LIMIT 1)) AS "parked",
         (SELECT coalesce(jsonb_object_agg(integration, seconds), '{}')
          FROM (SELECT integration, extract(epoch FROM now() - max(last_seen_at))::float8 AS seconds
                FROM location_last_seen GROUP BY integration) AS h) AS "silent",
         (SELECT coalesce(jsonb_object_agg(integration, seconds), '{}')
          FROM (SELECT integration, extract(epoch FROM min(ends_at) - now())::float8 AS seconds
                FROM (SELECT c.integration, c.granted_at + make_interval(secs => c.lasts_s) AS ends_at
                      FROM locations l JOIN credentials c ON c.seed_sha256 = l.grant_sha256
                      WHERE c.lasts_s IS NOT NULL
                      UNION ALL
                      -- An operator who disconnects a location on purpose pauses it too.
                      SELECT integration, reconnect_needed_at FROM locations
                      WHERE reconnect_needed_at IS NOT NULL AND paused_at IS NULL) AS g
                GROUP BY integration) AS g) AS "lasts",
         (SELECT coalesce(jsonb_object_agg(state, count), '{}')
          FROM (SELECT coalesce(k.state, 'open') AS state, count(*) AS count
                FROM locations l LEFT JOIN kitchens k USING (location_id) GROUP BY 1) AS k) AS "kitchens",
         (SELECT coalesce(jsonb_agg(g), '[]')
          FROM (SELECT "group", state, count(*)::int AS count
                FROM unfinished JOIN locations l USING (location_id) CROSS JOIN LATERAL unnest(l.groups) AS "group"
                GROUP BY "group", state ORDER BY "group", state LIMIT ${GROUPED}) AS g) AS "groups",
         jsonb_build_object('memberData', looks, 'operatorToken', by_token, 'admin',
           (SELECT count(*) FROM (SELECT roles, created_at FROM operator_tokens UNION ALL
                                  SELECT roles, created_at FROM operator_grants) AS given
            WHERE roles @> '{admin}' AND created_at > now() - interval '1 h')) AS actions
  FROM open CROSS JOIN actions
  LEFT JOIN (SELECT extract(epoch FROM now() - failing_since) AS failing, (stopped_at IS NOT NULL)::int AS stopped
             FROM status_endpoints e WHERE ${IS_ILL} ORDER BY endpoint LIMIT 1) AS endpoint ON true`;
