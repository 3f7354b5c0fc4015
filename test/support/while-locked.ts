import type pg from 'pg';

/** Has another transaction run `sql` and stay open during `work`. */
export async function beside<Result>(
  pool: pg.Pool,
  sql: string,
  work: () => Promise<Result>,
  values: unknown[] = [],
): Promise<Result> {
  const holder = await pool.connect();
  try {
    await holder.query('BEGIN');
    await holder.query(sql, values);
    return await work();
  } finally {
    await holder.query('ROLLBACK');
    holder.release();
  }
}

/** Has another transaction hold an order's row during `work`. */
export const whileLocked = <Result>(
  pool: pg.Pool,
  serviceOrderId: string,
  work: () => Promise<Result>,
): Promise<Result> => beside(pool, 'SELECT FROM orders WHERE service_order_id = $1 FOR UPDATE', work, [serviceOrderId]);
