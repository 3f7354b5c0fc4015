import type { Pool } from 'pg';
import { LEASE_S, type Claim } from '../domain/placement.ts';
import { nameParameters } from '../postgres/sql-rows.ts';
import { forgetPastOrder } from '../retention/past-orders.ts';
import { chooseQueues, type Chosen, type DueLocations, isFree, type Capacity } from './due-locations.ts';

/**
 * Claims due placements within the free capacity. Locks only the rows that it claims.
 * @param about.leaseId the lease id for all placements that this call claims
 * @param about.lost lease ids of claims whose response was lost. No worker has these placements, so they count as free
 * @param about.capacity returns the current free capacity
 */
export async function claimPlacements(
  pool: Pool,
  due: DueLocations,
  about: { leaseId: string; lost: readonly string[]; capacity: () => Capacity },
): Promise<Claim[]> {
  await due.refresh(pool, about.lost);
  for (;;) {
    // Read the capacity for each round, because it changes during each query.
    const chosen = chooseQueues(due.queues, about.capacity());
    if (chosen.length === 0) return [];
    const claims = await claim(pool, chosen, about);
    const claimedOf = Map.groupBy(claims, (each) => each.locationId ?? '');
    for (const { queue, take, newest, late } of chosen) {
      const isEmpty = (claimedOf.get(queue.locationId)?.length ?? 0) < take + newest;
      if (late) queue.late = 0;
      else if (isEmpty) due.remove(queue);
      else due.moveBack(queue);
    }
    // If nothing was claimed, other processes may have emptied the chosen queues. Try the remaining ones.
    if (claims.length > 0) return claims;
  }
}

const { $, valuesOf } = nameParameters('leaseId', 'lost', 'locationIds', 'since', 'takes', 'newest', 'late');

/** SQL that selects a queue's due placements. The row comparisons prevent a plan that scans other queues by time. */
const due = (direction: '' | 'DESC', limit: string): string => `
  SELECT service_order_id
  FROM placements
  WHERE finished_at IS NULL
    AND (coalesce(location_id, ''), next_attempt_at) >= (queue.location_id, queue.since)
    AND (coalesce(location_id, ''), next_attempt_at) <= (queue.location_id, now())
    AND ${isFree($.lost)} AND (NOT queue.late OR deadline_at < now())
  ORDER BY coalesce(location_id, '') ${direction}, next_attempt_at ${direction}
  LIMIT ${limit}
  FOR UPDATE SKIP LOCKED`;

const CLAIM = `
  WITH queue AS MATERIALIZED (
    SELECT *
    FROM unnest((SELECT ${$.locationIds}::text[]), (SELECT ${$.since}::timestamptz[]), (SELECT ${$.takes}::int[]),
                (SELECT ${$.newest}::int[]), (SELECT ${$.late}::boolean[]))
      AS queue(location_id, since, take, newest, late)
  ), oldest AS (
    SELECT each.service_order_id FROM queue CROSS JOIN LATERAL (${due('', 'queue.take')}) AS each
  ), newest AS (
    SELECT each.service_order_id FROM queue CROSS JOIN LATERAL (${due('DESC', 'queue.newest')}) AS each
  )
  UPDATE placements p
  SET lease_id = ${$.leaseId}::uuid, lease_until = now() + make_interval(secs => ${LEASE_S})
  WHERE p.service_order_id = ANY (ARRAY(SELECT service_order_id FROM oldest UNION SELECT service_order_id FROM newest))
  RETURNING p.service_order_id AS "serviceOrderId", p.lease_id AS "leaseId", p.location_id AS "locationId",
            (SELECT l.integration FROM locations l WHERE l.location_id = p.location_id) AS integration,
            p.state, p.next_attempt_at::text AS "dueAt", p.problem, p.failures,
            extract(epoch FROM now() - p.signalled_at)::float8 AS age,
            now() > p.deadline_at AS late,
            extract(epoch FROM now() - p.request_ended_at)::float8 AS "sinceRequest",
            EXISTS (SELECT FROM placement_attempts a
                    WHERE a.service_order_id = p.service_order_id AND a.ended_at IS NULL
                      AND a.call = 'createOrder') AS "callDied",
            -- An order that was fetched is not past. The row is locked and leased now, so the function may delete it.
            CASE WHEN p.location_id IS NULL THEN ${forgetPastOrder('p.service_order_id', 'p.lease_id')} ELSE false END
              AS "isPast",
            p.pos_account AS "posAccount"`;

async function claim(
  pool: Pool,
  chosen: readonly Chosen[],
  { leaseId, lost }: { leaseId: string; lost: readonly string[] },
): Promise<Claim[]> {
  const { rows } = await pool.query<Claim>({
    name: 'claim-placements',
    text: CLAIM,
    values: valuesOf({
      leaseId,
      lost,
      locationIds: chosen.map(({ queue }) => queue.locationId),
      since: chosen.map(({ queue }) => queue.since),
      takes: chosen.map((each) => each.take),
      newest: chosen.map((each) => each.newest),
      late: chosen.map((each) => each.late),
    }),
  });
  return rows;
}
