import type { Pool } from 'pg';
import { toLiveMessage, type LiveMessage, type LiveRow } from '../domain/live-message.ts';
import { LIVE_ROW } from './outbox.ts';

/** An order's messages after a given one, and whether the order has ended. */
export type ReadLive = { messages: LiveMessage[]; ended: boolean };

type Row = { serviceOrderId: string; ended: boolean; messages: LiveRow[] };

/**
 * Reads the live messages of some orders, published or not, each order's after its own sequence, in one indexed
 * statement. Erased messages are left out.
 * @param after by order, the sequence of the last known message; 0 for all
 * @returns by order; orders that no signal ever named are missing
 */
export async function readLive(pool: Pool, after: ReadonlyMap<string, number>): Promise<Map<string, ReadLive>> {
  const { rows } = await pool.query<Row>({
    name: 'read-live',
    // Looked up order by order: a plan made while a table was empty would read all of it.
    text: `
      SELECT asked.id AS "serviceOrderId", found.ended, found.messages
      FROM unnest($1::text[], $2::int[]) AS asked(id, after)
      CROSS JOIN LATERAL (
        SELECT CASE WHEN o.service_order_id IS NULL THEN p.finished_at IS NOT NULL ELSE o.ended_at IS NOT NULL END AS ended,
               (SELECT coalesce(json_agg(${LIVE_ROW} ORDER BY m.sequence), '[]')
                FROM (SELECT asked.id AS service_order_id, told.*, e.reason, e.occurred_at
                      FROM (SELECT sequence, rank, provider_order_id, applied_at, first_received_at FROM outbox
                            WHERE service_order_id = asked.id AND sequence > asked.after
                            UNION ALL
                            SELECT sequence, rank, provider_order_id, applied_at, first_received_at FROM live_messages
                            WHERE service_order_id = asked.id AND sequence > asked.after) AS told
                      LEFT JOIN LATERAL (
                        SELECT e.reason, e.occurred_at FROM status_events e
                        WHERE e.service_order_id = asked.id AND e.sequence = told.sequence OFFSET 0) AS e ON true) AS m
               ) AS messages
        FROM placements p LEFT JOIN orders o USING (service_order_id)
        WHERE p.service_order_id = asked.id
        OFFSET 0
      ) AS found`,
    values: [[...after.keys()], [...after.values()]],
  });
  return new Map(
    rows.map(({ serviceOrderId, ended, messages }) => [
      serviceOrderId,
      { ended, messages: messages.map(toLiveMessage) },
    ]),
  );
}
