import type pg from 'pg';
import { movePastOrders } from '../../src/core/retention/past-orders.ts';
import { dropOldPartitions } from '../../src/core/retention/retention-rules.ts';

type Database = { pool: pg.Pool; query(sql: string, values?: unknown[]): Promise<unknown> };

/** Makes a seeded order a past order, as if it had ended 40 days ago. */
export async function makePast({ pool, query }: Database, serviceOrderId: string): Promise<void> {
  await query(
    `WITH p AS (
       UPDATE placements SET signalled_at = now() - interval '40 days', finished_at = now() - interval '40 days'
       WHERE service_order_id = $1
     )
     UPDATE orders SET ended_at = now() - interval '40 days', erased_at = now() - interval '9 days'
     WHERE service_order_id = $1`,
    [serviceOrderId],
  );
  await movePastOrders(pool, 30);
}

/** Drops all past orders, as if they had been moved in March 2025. Their tombstones stay. */
export async function dropPast({ pool, query }: Database): Promise<void> {
  await pool.query(`SELECT ensure_past_orders_partition('2025-03-01')`);
  await query(`UPDATE past_orders SET month = '2025-03-01'`);
  await dropOldPartitions(pool, 'past_orders', 60);
}
