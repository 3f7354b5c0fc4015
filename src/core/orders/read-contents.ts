import type { Pool } from 'pg';
import type { CanonicalOrder } from '../domain/order.ts';

/** An order as it was fetched: member data. @returns null before that, and once it is erased */
export async function readContents(pool: Pool, serviceOrderId: string): Promise<CanonicalOrder | null> {
  const { rows } = await pool.query<{ contents: CanonicalOrder }>(
    'SELECT contents FROM order_contents WHERE service_order_id = $1',
    [serviceOrderId],
  );
  return rows[0]?.contents ?? null;
}
