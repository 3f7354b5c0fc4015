import type { Pool } from 'pg';
import type { CancellationState } from '../domain/placement.ts';
import { RANK_CANCELLED, RANK_END, RANK_FAILED } from '../domain/lifecycle.ts';
import { describeCause, problemOf } from '../domain/explain-cause.ts';
import type { Problem } from '../domain/placement-cause.ts';
import { endingCalls } from '../transitions/placement-sql.ts';
import { LEAVING_DOUBT } from './conclude-cancellation.ts';
import { unlessErased } from './changed-order.ts';

/** A cancellation that is decided without a call to the POS. */
export type Swept = {
  serviceOrderId: string;
  locationId: string;
  integration: string | null;
  outcome: 'cancelled' | 'refused' | 'by_phone';
} & Partial<Problem>;

/**
 * Decides cancellations that need no POS call: those of ended orders and those past their deadline. It covers all
 * locations at once, so hanging calls do not delay it. Every process runs it each second.
 */
export async function sweepCancellations(pool: Pool): Promise<Swept[]> {
  const finished = await pool.query<Omit<Swept, 'outcome'> & { outcome: CancellationState }>({
    name: 'finish-ended-cancellations',
    text: FINISH_ENDED,
  });
  const said = finished.rows.filter((row): row is Swept => row.outcome === 'cancelled' || row.outcome === 'refused');
  const { problem, cause } = problemOf({ code: 'cancel_deadline_passed' });
  const late = await pool.query<Swept>({
    name: 'give-late-cancellations-to-people',
    text: GIVE_TO_PEOPLE,
    values: [problem, cause, describeCause({ code: 'process_died' })],
  });
  return [...said, ...late.rows];
}

/** SQL that is true if there are cancellations that no answer has ended. */
export const ARE_OPEN = 'EXISTS (SELECT FROM cancellations WHERE finished_at IS NULL)';

/** SQL of a column of a cancellation's order. A join could compare each cancellation with each order. */
const of = (column: string): string =>
  `(SELECT ${column} FROM orders WHERE service_order_id = cancellations.service_order_id)`;

/**
 * Finishes the cancellations of ended orders, so that webhooks do not have to. The state becomes `cancelled` for a
 * cancelled order, and `refused` for a completed one. It does not change for a failed or expired order, because the POS
 * did not refuse.
 */
const FINISH_ENDED = `
  WITH ended AS MATERIALIZED (
    SELECT c.service_order_id
    FROM cancellations c
    CROSS JOIN LATERAL (SELECT ended_at FROM orders WHERE service_order_id = c.service_order_id OFFSET 0) AS o
    WHERE c.finished_at IS NULL AND o.ended_at IS NOT NULL
    FOR UPDATE OF c SKIP LOCKED
  )
  UPDATE cancellations
  SET finished_at = now(), lease_id = NULL, lease_until = NULL,
      (state, problem, cause) = (
        SELECT said, CASE WHEN said <> 'cancelled' THEN problem END, CASE WHEN said <> 'cancelled' THEN cause END
        FROM (SELECT CASE WHEN rank >= ${RANK_CANCELLED} THEN 'cancelled'
                          WHEN rank >= ${RANK_END} AND rank < ${RANK_FAILED} THEN 'refused' ELSE state END AS said
              FROM orders WHERE service_order_id = cancellations.service_order_id) AS o)
  WHERE service_order_id = ANY (ARRAY(SELECT service_order_id FROM ended))
  RETURNING service_order_id AS "serviceOrderId", location_id AS "locationId", ${of('integration')} AS integration,
            state AS outcome`;

/**
 * Hands late cancellations to a person. A call that is under way ends at the deadline, so the next sweep finds its
 * cancellation. Orders that are not sent yet are excluded. They are withdrawn, or wait for the call that sends them.
 */
const GIVE_TO_PEOPLE = `
  WITH late AS MATERIALIZED (
    SELECT c.service_order_id
    FROM cancellations c
    CROSS JOIN LATERAL (SELECT state FROM placements WHERE service_order_id = c.service_order_id OFFSET 0) AS p
    WHERE c.finished_at IS NULL AND c.next_attempt_at < 'infinity' AND c.deadline_at < now()
      AND (c.lease_until IS NULL OR c.lease_until < now()) AND p.state IN ('sent', 'in_doubt')
  ), locked AS MATERIALIZED (
    -- Lock the orders' rows first, sorted by key.
    SELECT service_order_id, ended_at FROM orders
    WHERE service_order_id = ANY (ARRAY(SELECT service_order_id FROM late))
    ORDER BY service_order_id FOR UPDATE SKIP LOCKED
  ), c AS (
    UPDATE cancellations
    -- guard: cancel-deadline
    SET state = 'by_phone', next_attempt_at = 'infinity', lease_id = NULL, lease_until = NULL, cause = $2::jsonb,
        problem = left(concat_ws(': ', $1::text, ${unlessErased('problem', of('erased_at'))}), 500)
    -- guard: late-by-index
    WHERE service_order_id = ANY (ARRAY(SELECT service_order_id FROM locked WHERE ended_at IS NULL))
      AND num_nulls(finished_at) = 1 AND next_attempt_at < 'infinity' AND (lease_until IS NULL OR lease_until < now())
    RETURNING service_order_id, location_id, ${of('integration')} AS integration, problem
  ), died AS (${endingCalls('c', '$3', "= 'cancelOrder'")}
  ), doubt AS (${LEAVING_DOUBT}
  )
  SELECT service_order_id AS "serviceOrderId", location_id AS "locationId", integration, 'by_phone' AS outcome, problem,
         $2::jsonb AS cause
  FROM c`;
