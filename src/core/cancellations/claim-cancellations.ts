import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import type { CanonicalOrder, KitchenOrder } from '../domain/order.ts';
import { LEASE_S } from '../domain/placement.ts';
import { nameParameters } from '../postgres/sql-rows.ts';

/** A cancellation that this process works on until its lease ends. */
export type CancelClaim = {
  serviceOrderId: string;
  leaseId: string;
  locationId: string;
  /** At which the order was sent; null if it never was. */
  integration: string | null;
  /** due: to be asked. asked, in_doubt: the POS is asked what became of the request. */
  state: 'due' | 'asked' | 'in_doubt';
  /** Until a person telephones. A call that hangs ends then. */
  secondsLeft: number;
  failures: number;
  problem: string | null;
  /** A request to cancel began, and its process died before the end. */
  callDied: boolean;
  /** Set if nobody knows whether there is a ticket. */
  doubt: { secondsSinceRequest: number } | undefined;
  providerOrderId: string | null;
  posAccount: string | null;
  /** As it was sent. Null once it is erased. */
  order: (CanonicalOrder & Pick<KitchenOrder, 'callOutCode'>) | null;
};

/** How many calls there may be to an integration, so that one that hangs leaves room for others. */
const OF_ONE = 32;
/** The same while its circuit is open: a few try it. */
const OF_OPEN = 4;

const { $, valuesOf } = nameParameters('limit', 'leaseId', 'busy', 'open');

/**
 * Of a location one at a time, whichever process has it. Looked up one by one: a plan made while there were few orders
 * would read them all. A placement in doubt is left to its own worker, until that asks
 * an operator: asked to cancel it, the POS may know.
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
      -- guard: one-cancel-each
      AND c.location_id <> ALL (ARRAY(SELECT location_id FROM taken))
      AND (p.state = 'sent' OR p.state = 'in_doubt' AND p.next_attempt_at = 'infinity')
    ORDER BY c.location_id, c.next_attempt_at, c.service_order_id -- one alone, for whoever looks at this moment
  ), within AS (
    SELECT service_order_id, next_attempt_at
    FROM (SELECT *, row_number() OVER (PARTITION BY integration ORDER BY next_attempt_at) AS nth FROM first) AS each
    WHERE nth + cardinality(array_positions(${$.busy}::text[], coalesce(integration, '')))
          <= CASE WHEN integration = ANY (${$.open}::text[]) THEN ${OF_OPEN} ELSE ${OF_ONE} END
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
         d.contents || jsonb_strip_nulls(jsonb_build_object('callOutCode', o.call_out_code)) AS "order"
  FROM claimed c
  CROSS JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = c.service_order_id OFFSET 0) AS o
  CROSS JOIN LATERAL (SELECT * FROM placements WHERE service_order_id = c.service_order_id OFFSET 0) AS p
  LEFT JOIN LATERAL (SELECT * FROM order_contents WHERE service_order_id = c.service_order_id OFFSET 0) AS d ON true`;

/**
 * Claims cancellations that are due.
 * @param about.busy the integration of each that this process works on
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
