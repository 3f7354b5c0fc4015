import type { ClientBase } from 'pg';
import { kitchenChanges } from '../domain/kitchen-changes.ts';
import type { ChangeState } from '../domain/live-message.ts';
import type { CanonicalOrder } from '../domain/order.ts';
import { INSERT_SAME_STATUS, nextSequence } from '../live/outbox.ts';
import { compareOrders, type OrderChange, withChanges } from './changed-order.ts';

/** Maximum of differences stored per order. Older ones are deleted: a platform's response may differ every time. */
const CHANGES_STORED = 20;

type Stored = { changes: OrderChange[]; seenAt: string };

/**
 * Stores the complete difference between the platform's order and the ticket, empty if there is none any more. What
 * differs for the kitchen or the driver becomes a person's job, and the topic says that it is not applied. What the
 * restaurant has applied before does not differ for them. The order must be locked, sent and not ended.
 * @param contents the order as it was sent
 * @returns the difference, or undefined if the newest row has the same
 */
export async function recordChange(
  client: ClientBase,
  contents: CanonicalOrder,
  order: CanonicalOrder,
): Promise<OrderChange[] | undefined> {
  const { serviceOrderId } = contents;
  const { rows } = await client.query<{ asked: Stored | null; applied: Stored | null }>({
    name: 'read-change',
    text: `
      SELECT ${storedWhere('seen_at = o.changed_at')} AS asked, ${storedWhere('applied')} AS applied
      FROM orders o WHERE service_order_id = $1`,
    values: [serviceOrderId],
  });
  const { asked = null, applied = null } = rows[0] ?? {};
  const asThen = (row: Stored | null): CanonicalOrder => withChanges(contents, row?.changes ?? []);
  // guard: applied-before
  const told = kitchenChanges(asThen(applied), order);
  const isNew = kitchenChanges(asThen(asked), order).length > 0;
  const state: ChangeState | null = told.length > 0 ? 'not_applied' : applied === null ? null : 'applied';
  const changes = compareOrders(contents, order);
  const { rowCount } = await client.query({
    name: 'record-change',
    text: `
      WITH was AS MATERIALIZED (
        SELECT change, changed_at FROM orders WHERE service_order_id = $1
      ), job AS (
        UPDATE orders o
        SET change = $4::text, changed_at = CASE $4 WHEN 'not_applied' THEN now() ELSE $5::timestamptz END,
            sequence = CASE WHEN was.change IS DISTINCT FROM $4 THEN ${nextSequence('o.sequence')} ELSE o.sequence END
        FROM was
        -- guard: change-once
        WHERE service_order_id = $1 AND $6::boolean
        RETURNING service_order_id, sequence, rank, provider_order_id, was.change IS DISTINCT FROM $4 AS is_news
      ), live AS (
        ${INSERT_SAME_STATUS}
        FROM job WHERE is_news
      ), gone AS (
        DELETE FROM order_changes
        WHERE service_order_id = $1 AND NOT applied AND seen_at IS DISTINCT FROM (SELECT changed_at FROM was)
          AND seen_at <= (SELECT seen_at FROM order_changes WHERE service_order_id = $1
                          ORDER BY seen_at DESC OFFSET ${CHANGES_STORED - 1} LIMIT 1)
      )
      INSERT INTO order_changes (service_order_id, changes, told)
      SELECT $1::text, $2::jsonb, $3::jsonb
      WHERE $6 AND $4 = 'not_applied'
         OR $2::jsonb <> coalesce((SELECT changes FROM order_changes WHERE service_order_id = $1
                                   ORDER BY seen_at DESC LIMIT 1), '[]')`,
    values: [serviceOrderId, JSON.stringify(changes), JSON.stringify(told), state, applied?.seenAt ?? null, isNew],
  });
  return rowCount === 1 ? changes : undefined;
}

/** SQL of the newest difference of order `o` that meets a condition; NULL for none. */
const storedWhere = (condition: string): string => `(
  SELECT json_build_object('changes', changes, 'seenAt', seen_at) FROM order_changes
  WHERE service_order_id = $1 AND ${condition} ORDER BY seen_at DESC LIMIT 1)`;
