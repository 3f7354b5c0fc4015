import type { ClientBase } from 'pg';
import { CODE_OF_COUNT, countCode } from '../placements/call-out-code.ts';
import type { ReadOrder } from '../domain/read-canonical-order.ts';

/**
 * Stores an order as the platform has it now, in the place of what was fetched before. It was never sent, and is locked.
 * Whoever is about to send it loses the placement, and the next one sends the newest. It keeps its call-out code, unless
 * its location is another one now: each location counts its own.
 * @param deadlineS seconds after `requestedAt` for which the order is worth placing
 */
export async function storeNewest(client: ClientBase, { order, leftOut }: ReadOrder, deadlineS: number): Promise<void> {
  await client.query({
    name: 'store-newest',
    text: `
      WITH moved AS (
        SELECT FROM orders WHERE service_order_id = $1 AND location_id <> $2
      ), n AS (
        ${countCode('$2', 'moved')}
      ), o AS (
        UPDATE orders
        SET location_id = $2, call_out_code = coalesce((SELECT ${CODE_OF_COUNT} FROM n), call_out_code),
            fulfillment = $3, requested_at = $4::timestamptz, left_out = $6::jsonb, updated_at = now()
        WHERE service_order_id = $1
      ), c AS (
        UPDATE order_contents SET contents = $7::jsonb WHERE service_order_id = $1
      )
      UPDATE placements
      -- guard: worker-lets-go
      SET location_id = $2, next_attempt_at = now(), failures = 0, lease_id = NULL, lease_until = NULL,
          deadline_at = greatest(deadline_at, $4::timestamptz + make_interval(secs => $5::int))
      WHERE service_order_id = $1 AND num_nulls(finished_at) = 1`,
    values: [
      order.serviceOrderId,
      order.locationId,
      order.fulfillment.type,
      order.fulfillment.requestedAt ?? null,
      deadlineS,
      leftOut.length === 0 ? null : JSON.stringify(leftOut),
      JSON.stringify(order),
    ],
  });
}
