import type { Pool } from 'pg';
import { RANK_CANCELLED } from '../domain/lifecycle.ts';

/** A cancellation that is over since its order has ended. */
export type Finished = {
  serviceOrderId: string;
  locationId: string;
  integration: string | null;
  outcome: 'cancelled' | 'refused';
};

/**
 * Finishes the cancellations of orders that have ended: the POS's webhook said that it is cancelled, or it was too late.
 * So a webhook has nothing to do with them.
 */
export async function finishEnded(pool: Pool): Promise<Finished[]> {
  const { rows } = await pool.query<Finished>({
    name: 'finish-ended-cancellations',
    text: `
      WITH ended AS MATERIALIZED (
        SELECT c.service_order_id, o.integration, o.rank >= ${RANK_CANCELLED} AS cancelled
        FROM cancellations c
        CROSS JOIN LATERAL (
          SELECT rank, integration, ended_at FROM orders WHERE service_order_id = c.service_order_id
          OFFSET 0 -- looked up one by one: a plan made while there were few would read them all
        ) AS o
        WHERE c.finished_at IS NULL AND o.ended_at IS NOT NULL
        FOR UPDATE OF c SKIP LOCKED
      ), cancelled AS (
        SELECT ARRAY(SELECT service_order_id FROM ended WHERE cancelled) AS ids
      )
      UPDATE cancellations c
      SET state = CASE WHEN c.service_order_id = ANY (ids) THEN 'cancelled' ELSE 'refused' END, finished_at = now(),
          problem = CASE WHEN c.service_order_id = ANY (ids) THEN NULL ELSE problem END,
          cause = CASE WHEN c.service_order_id = ANY (ids) THEN NULL ELSE cause END, lease_id = NULL, lease_until = NULL
      FROM cancelled
      WHERE c.service_order_id = ANY (ARRAY(SELECT service_order_id FROM ended))
      RETURNING c.service_order_id AS "serviceOrderId", c.location_id AS "locationId",
                (SELECT integration FROM ended e WHERE e.service_order_id = c.service_order_id), c.state AS outcome`,
  });
  return rows;
}
