import type { Pool } from 'pg';

/**
 * Creates an order's placement, once. A signal for a known order changes nothing.
 * @param deadlineS seconds from now after which the order is no longer worth placing
 */
export async function recordSignal(
  pool: Pool,
  serviceOrderId: string,
  deadlineS: number,
): Promise<'recorded' | 'known'> {
  const { rowCount } = await pool.query({
    name: 'record-signal',
    text: `INSERT INTO placements (service_order_id, deadline_at) VALUES ($1, now() + make_interval(secs => $2::int))
           ON CONFLICT DO NOTHING`,
    values: [serviceOrderId, deadlineS],
  });
  return rowCount === 1 ? 'recorded' : 'known';
}
