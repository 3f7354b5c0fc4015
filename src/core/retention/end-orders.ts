import type { Pool } from 'pg';
import { inTransaction } from '../postgres/in-transaction.ts';
import { LOCK_END_ORDERS, tryLock } from '../postgres/locks.ts';

const BATCH = 1_000;

/**
 * Ends orders that had no event for `orderEndS` seconds, counted from the last one or the requested time. Nothing is
 * published: the member saw all there was. An order that may still be placed goes on, also while an attempt runs; one
 * that is held, perhaps for ever, or in doubt does not.
 * @returns the number of orders ended
 */
export async function endOrders(pool: Pool, orderEndS: number): Promise<number> {
  return inTransaction(pool, async (client) => {
    if (!(await tryLock(client, LOCK_END_ORDERS))) return 0;
    const { rowCount } = await client.query(
      `UPDATE orders SET ended_at = now()
       WHERE service_order_id IN (
         SELECT o.service_order_id FROM orders o
         WHERE o.ended_at IS NULL
           AND greatest(o.updated_at, o.requested_at) < now() - make_interval(secs => $1::int)
           AND NOT EXISTS (SELECT FROM status_events e
                           WHERE e.service_order_id = o.service_order_id
                             AND e.recorded_at >= now() - make_interval(secs => $1::int))
           AND NOT EXISTS (SELECT FROM placements p
                           WHERE p.service_order_id = o.service_order_id AND p.finished_at IS NULL
                             AND (p.state NOT IN ('in_doubt', 'held') OR p.lease_until > now()))
         LIMIT ${BATCH} FOR UPDATE OF o SKIP LOCKED)`,
      [orderEndS],
    );
    return rowCount ?? 0;
  });
}
