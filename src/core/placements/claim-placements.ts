import type { Pool } from 'pg';
import { LEASE_S, type Claim } from '../domain/placement.ts';
import { nameParameters } from '../postgres/name-parameters.ts';
import type { SilentLocation } from './circuit-breaker.ts';

const { $, valuesOf } = nameParameters(
  'leaseId',
  'lost',
  'limit',
  'share',
  'senders',
  'sendersOfOne',
  'oldest',
  'newest',
  'late',
  'busyLocations',
  'busyIntegrations',
  'openIntegrations',
  'openProbes',
  'silentLocations',
  'silentIntegrations',
  'silentForS',
);

const CLAIM = `
  WITH RECURSIVE lane(name) AS (
    (SELECT coalesce(location_id, '') FROM placements WHERE finished_at IS NULL
     ORDER BY coalesce(location_id, '') LIMIT 1)
    UNION ALL
    SELECT (SELECT coalesce(location_id, '') FROM placements
            WHERE finished_at IS NULL AND coalesce(location_id, '') > lane.name
            ORDER BY coalesce(location_id, '') LIMIT 1)
    FROM lane WHERE lane.name IS NOT NULL
  ), found AS (
    SELECT oldest.service_order_id, oldest.next_attempt_at, lane.name <> '' AS sends,
           l.integration, open.probes, silent.for_s,
           -- How many of its location's would be under way with it.
           row_number() OVER (PARTITION BY lane.name ORDER BY oldest.next_attempt_at)
             + cardinality(array_positions(${$.busyLocations}::text[], lane.name)) AS turn
    FROM lane
    LEFT JOIN locations l ON l.location_id = lane.name
    LEFT JOIN unnest(${$.openIntegrations}::text[], ${$.openProbes}::int[]) AS open(integration, probes)
      ON open.integration = l.integration
    LEFT JOIN unnest(${$.silentLocations}::text[], ${$.silentIntegrations}::text[], ${$.silentForS}::float8[])
      AS silent(location_id, integration, for_s)
      ON silent.location_id = lane.name AND silent.integration = l.integration
      AND l.updated_at < now() - make_interval(secs => silent.for_s)
      AND l.paused_at IS NULL -- or those who wait for a person would be all that is probed
    CROSS JOIN LATERAL (
      SELECT CASE WHEN open.probes IS NULL THEN ${$.share}::int WHEN silent.for_s IS NULL THEN 1
                  ELSE sign(open.probes)::int END
             - cardinality(array_positions(${$.busyLocations}::text[], lane.name)) AS free
    ) AS share
    CROSS JOIN LATERAL (
      SELECT service_order_id, next_attempt_at
      FROM placements
      WHERE finished_at IS NULL AND coalesce(location_id, '') = lane.name AND next_attempt_at <= now()
        AND (lease_until IS NULL OR lease_until < now() OR lease_id = ANY (${$.lost}::uuid[]))
      ORDER BY next_attempt_at
      LIMIT CASE WHEN lane.name = '' THEN ${$.oldest}::int
                 ELSE least(${$.limit}::int, greatest(0, share.free)) END
      FOR UPDATE SKIP LOCKED
    ) AS oldest
  ), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY integration, for_s IS NULL
                                 ORDER BY for_s DESC, turn, next_attempt_at) AS nth
    FROM found WHERE sends
  ), newest AS (
    SELECT service_order_id
    FROM placements
    WHERE finished_at IS NULL AND coalesce(location_id, '') = '' AND next_attempt_at <= now()
      AND (lease_until IS NULL OR lease_until < now() OR lease_id = ANY (${$.lost}::uuid[]))
    ORDER BY next_attempt_at DESC
    LIMIT ${$.newest}::int
    FOR UPDATE SKIP LOCKED
  ), late AS (
    SELECT service_order_id
    FROM placements
    WHERE finished_at IS NULL AND coalesce(location_id, '') = ANY (${$.silentLocations}::text[])
      AND next_attempt_at <= now()
      AND (lease_until IS NULL OR lease_until < now() OR lease_id = ANY (${$.lost}::uuid[]))
      AND deadline_at < now() AND state <> 'in_doubt'
    LIMIT ${$.late}::int
    FOR UPDATE SKIP LOCKED
  ), due AS (
    (SELECT service_order_id FROM ranked
     WHERE nth <= CASE WHEN for_s IS NOT NULL THEN probes
                       ELSE ${$.sendersOfOne}::int
                            - cardinality(array_positions(${$.busyIntegrations}::text[], integration)) END
     ORDER BY turn, next_attempt_at LIMIT least(${$.limit}::int, ${$.senders}::int))
    UNION
    SELECT service_order_id FROM found WHERE NOT sends
    UNION
    SELECT service_order_id FROM newest
    UNION
    SELECT service_order_id FROM late
  )
  UPDATE placements p
  SET lease_id = ${$.leaseId}::uuid, lease_until = now() + make_interval(secs => ${LEASE_S})
  FROM due
  WHERE p.service_order_id = due.service_order_id
  RETURNING p.service_order_id AS "serviceOrderId", p.lease_id AS "leaseId", p.location_id AS "locationId",
            (SELECT l.integration FROM locations l WHERE l.location_id = p.location_id) AS integration,
            p.state, p.next_attempt_at::text AS "dueAt", p.problem, p.failures,
            extract(epoch FROM now() - p.signalled_at)::float8 AS age,
            now() > p.deadline_at AS late,
            extract(epoch FROM now() - p.request_ended_at)::float8 AS "sinceRequest",
            EXISTS (SELECT FROM placement_attempts a
                    WHERE a.service_order_id = p.service_order_id AND a.ended_at IS NULL
                      AND a.call = 'createOrder') AS "callDied",
            p.pos_account AS "posAccount"`;

/**
 * Claims due placements within each location's share, the locations in turn: a hanging POS delays only its own orders,
 * and a vendor that hangs at a hundred locations does not delay others either. Placements not fetched yet, whose
 * location is unknown, have a share of their own, so that a hanging platform does not delay the fetched ones. Some of
 * them are the newest, so that one location's backlog does not delay everybody's next order.
 * @param about.leaseId of all claimed now
 * @param about.lost lease ids of earlier claims whose answer was lost: their placements are free again, since nobody
 *   works on them
 * @param about.busy the locations that this process is sending for now, one entry per placement
 * @param about.senders how many fetched ones may be claimed in all
 * @param about.sendersOfOne how many of one integration may be under way
 * @param about.open integrations with an open circuit: one placement at a time per location, and for all silent
 *   locations together only the probes, longest untried first
 * @param about.silent locations of open integrations whose last call had no answer; not those with settings put since
 *   it began, or with another integration now
 * @param about.late how many more may be claimed that wait for a probe past their deadline
 * @param about.oldest how many of those not fetched yet may be claimed, and `about.newest` so many more
 */
export async function claimPlacements(
  pool: Pool,
  about: {
    leaseId: string;
    lost: readonly string[];
    limit: number;
    share: number;
    busy: readonly { locationId: string; integration: string | null }[];
    senders: number;
    sendersOfOne: number;
    open: readonly { integration: string; probes: number }[];
    silent: readonly SilentLocation[];
    late: number;
    oldest: number;
    newest: number;
  },
): Promise<Claim[]> {
  const { rows } = await pool.query<Claim>({
    name: 'claim-placements',
    text: CLAIM,
    values: valuesOf({
      ...about,
      busyLocations: about.busy.map((each) => each.locationId),
      busyIntegrations: about.busy.map((each) => each.integration),
      openIntegrations: about.open.map((each) => each.integration),
      openProbes: about.open.map((each) => each.probes),
      silentLocations: about.silent.map((each) => each.locationId),
      silentIntegrations: about.silent.map((each) => each.integration),
      silentForS: about.silent.map((each) => each.silentForS),
    }),
  });
  return rows;
}
