import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import type { CanonicalOrder, KitchenOrder } from '../domain/order.ts';
import { LEASE_S } from '../domain/placement.ts';
import { nameParameters } from '../postgres/sql-rows.ts';

/** A cancellation that this process has claimed until the lease expires. */
export type CancelClaim = {
  serviceOrderId: string;
  leaseId: string;
  locationId: string;
  /** The integration to which the order was sent. Null if it was never sent. */
  integration: string | null;
  /** due: the POS is to be asked to cancel. asked, in_doubt: the result of the request is to be read. */
  state: 'due' | 'asked' | 'in_doubt';
  /** Seconds until a person must telephone. A call that hangs is aborted at that time. */
  secondsLeft: number;
  failures: number;
  problem: string | null;
  /** True if a cancel request began and its process died before the request ended. */
  callDied: boolean;
  /** Set if it is unknown whether there is a ticket. */
  doubt: { secondsSinceRequest: number } | undefined;
  providerOrderId: string | null;
  posAccount: string | null;
  /** The order as it was sent. Null once it is erased. */
  order: (CanonicalOrder & Pick<KitchenOrder, 'callOutCode'>) | null;
};

/** Maximum of calls to one integration, so that a hanging integration leaves capacity for others. */
const CALLS_OF_ONE = 32;
/** Maximum of calls to an integration whose circuit is open. These calls are the probes. */
const CALLS_OF_OPEN = 4;

const { $, valuesOf } = nameParameters('limit', 'leaseId', 'busy', 'open');

/**
 * Claims at most one cancellation per location, across processes. `OFFSET 0` forces index lookups. A plan cached while
 * the table was small would scan the table. An order in doubt is not cancelled while retries of its placement may still
 * resolve the doubt. Afterwards the POS is asked to cancel it, because the response may show whether there is a ticket.
 */
const CLAIM = `
  WITH taken AS MATERIALIZED (
    SELECT location_id FROM cancellations WHERE finished_at IS NULL AND lease_until > now()
  ), first AS (
    SELECT DISTINCT ON (c.location_id) c.service_order_id, c.next_attempt_at, l.integration
    FROM cancellations c
    CROSS JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = c.service_order_id OFFSET 0) AS o
    CROSS JOIN LATERAL (SELECT * FROM placements WHERE service_order_id = c.service_order_id OFFSET 0) AS p
    LEFT JOIN LATERAL (SELECT * FROM locations WHERE location_id = c.location_id OFFSET 0) AS l ON true
    WHERE c.finished_at IS NULL AND c.next_attempt_at <= now() AND o.ended_at IS NULL
      -- At the deadline, the sweep gives it to a person, but not while a worker calls a POS that hangs.
      -- guard: cancel-until-deadline
      AND c.deadline_at > now() + interval '1 s' -- the shortest limit of a call
      -- guard: one-cancel-each
      AND c.location_id <> ALL (ARRAY(SELECT location_id FROM taken))
      AND (p.state = 'sent' OR p.state = 'in_doubt' AND p.next_attempt_at = 'infinity')
    ORDER BY c.location_id, c.next_attempt_at, c.service_order_id -- concurrent claims choose the same one
  ), within AS (
    SELECT service_order_id, next_attempt_at
    FROM (SELECT *, row_number() OVER (PARTITION BY integration ORDER BY next_attempt_at) AS nth FROM first) AS each
    WHERE nth + cardinality(array_positions(${$.busy}::text[], coalesce(integration, '')))
          <= CASE WHEN integration = ANY (${$.open}::text[]) THEN ${CALLS_OF_OPEN} ELSE ${CALLS_OF_ONE} END
    ORDER BY next_attempt_at LIMIT ${$.limit}::int
  ), claimed AS (
    UPDATE cancellations SET lease_id = ${$.leaseId}::uuid, lease_until = now() + make_interval(secs => ${LEASE_S})
    WHERE service_order_id = ANY (ARRAY(
      SELECT service_order_id FROM cancellations
      WHERE service_order_id = ANY (ARRAY(SELECT service_order_id FROM within))
        AND num_nulls(finished_at) = 1 AND next_attempt_at <= now() AND (lease_until IS NULL OR lease_until < now())
      FOR UPDATE SKIP LOCKED))
    RETURNING *
  )
  SELECT c.service_order_id AS "serviceOrderId", c.lease_id AS "leaseId", c.location_id AS "locationId", o.integration,
         c.state,
         extract(epoch FROM c.deadline_at - clock_timestamp())::float8 AS "secondsLeft", c.failures, c.problem,
         EXISTS (SELECT FROM placement_attempts a
                 WHERE a.service_order_id = c.service_order_id AND a.ended_at IS NULL
                   AND a.call = 'cancelOrder') AS "callDied",
         p.state = 'in_doubt' AS "inDoubt",
         extract(epoch FROM now() - p.request_ended_at)::float8 AS "sinceRequest",
         o.provider_order_id AS "providerOrderId", p.pos_account AS "posAccount",
         d.contents || jsonb_build_object('callOutCode', o.call_out_code) AS "order"
  FROM claimed c
  CROSS JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = c.service_order_id OFFSET 0) AS o
  CROSS JOIN LATERAL (SELECT * FROM placements WHERE service_order_id = c.service_order_id OFFSET 0) AS p
  LEFT JOIN LATERAL (SELECT * FROM order_contents WHERE service_order_id = c.service_order_id OFFSET 0) AS d ON true`;

/**
 * Claims due cancellations.
 * @param about.busy the integrations of the cancellations that this process works on, one entry per cancellation
 * @param about.open integrations whose circuit is open
 */
export async function claimCancellations(
  pool: Pool,
  about: { limit: number; busy: readonly string[]; open: readonly string[] },
): Promise<CancelClaim[]> {
  const { rows } = await pool.query<Omit<CancelClaim, 'doubt'> & { inDoubt: boolean; sinceRequest: number | null }>({
    name: 'claim-cancellations',
    text: CLAIM,
    values: valuesOf({ ...about, leaseId: randomUUID() }),
  });
  return rows.map(({ inDoubt, sinceRequest, ...claim }) => ({
    ...claim,
    doubt: inDoubt ? { secondsSinceRequest: sinceRequest ?? 0 } : undefined,
  }));
}
