import type { PoolClient } from 'pg';
import type { PlacementState } from '../domain/placement.ts';

const NAMED = 5;

/**
 * Names or counts the unfinished orders of a location. Without it they would lose their statuses, or could never be sent.
 * @param about.sentBy only orders that this integration may have sent
 */
export async function findUnfinished(
  client: PoolClient,
  locationId: string,
  { namesOrders, sentBy = null }: { namesOrders: boolean | undefined; sentBy?: string | null },
): Promise<string | undefined> {
  const { rows } = await client.query<{ serviceOrderId: string; state: PlacementState | null; count: number }>(
    `SELECT o.service_order_id AS "serviceOrderId", p.state, count(*) OVER ()::int AS count
     FROM orders o LEFT JOIN placements p USING (service_order_id)
     WHERE o.location_id = $1 AND o.ended_at IS NULL
       AND ($2::text IS NULL OR o.integration = $2 AND (p.state IN ('waiting', 'held')) IS NOT TRUE)
     ORDER BY o.created_at LIMIT ${NAMED}`,
    [locationId, sentBy],
  );
  const count = rows[0]?.count ?? 0;
  if (count === 0) return undefined;
  const named = rows.map((row) => `${row.serviceOrderId} (${(row.state ?? 'sent').replace('_', ' ')})`);
  const more = count > rows.length ? ` and ${count - rows.length} more` : '';
  // guard: orders-for-their-readers
  const which = namesOrders ? `: ${named.join(', ')}${more}` : ` (${count})`;
  return `the location has orders that have not ended${which}. Each order ends with its last status, or a day after its last event`;
}
