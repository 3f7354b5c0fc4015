import type { Pool } from 'pg';
import { LOCK_END_ORDERS } from '../postgres/transactions.ts';

const BATCH = 1_000;

/**
 * Ends orders that had no event for `orderEndS` seconds, counted from the last one or the requested time. Nothing is
 * published: the member saw all there was. An order that may still be placed goes on, also while an attempt runs. One
 * that is held, perhaps for ever, or in doubt does not: its placement's next try fails it, which tells the member, or
 * asks an operator. One process at a time, in one statement: no lock on an order outlasts it.
 * @returns the number of orders ended
 */
export async function endOrders(pool: Pool, orderEndS: number): Promise<number> {
  const { rowCount } = await pool.query(
    `WITH turn AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(${LOCK_END_ORDERS}) AS mine)
     UPDATE orders SET ended_at = now()
     WHERE service_order_id = ANY (ARRAY(
       SELECT o.service_order_id FROM orders o
       WHERE (SELECT mine FROM turn)
         AND o.ended_at IS NULL
         -- Says nothing new, and is read in the index: the rows of younger orders need not be looked at.
         AND o.created_at < now() - make_interval(secs => $1::int)
         AND greatest(o.updated_at, o.requested_at) < now() - make_interval(secs => $1::int)
         AND NOT EXISTS (SELECT FROM status_events e
                         WHERE e.service_order_id = o.service_order_id
                           AND e.recorded_at >= now() - make_interval(secs => $1::int))
         AND NOT EXISTS (SELECT FROM placements p
                         WHERE p.service_order_id = o.service_order_id AND p.finished_at IS NULL
                           AND (p.state NOT IN ('in_doubt', 'held') OR p.lease_until > now()))
       LIMIT ${BATCH} FOR UPDATE OF o SKIP LOCKED))`,
    [orderEndS],
  );
  return rowCount ?? 0;
}
