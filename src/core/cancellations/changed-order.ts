import { isDeepStrictEqual } from 'node:util';
import type { ClientBase } from 'pg';
import { isObject } from '../domain/json-text.ts';
import type { CanonicalOrder } from '../domain/order.ts';
import { PAUSED_AT, TAKE_OFF_PAUSE } from '../kitchens/pause-location.ts';
import { CODE_OF_COUNT, countCode } from '../placements/record-order.ts';
import type { ReadOrder } from '../domain/read-canonical-order.ts';
import type { CancellationState, PlacementState } from '../domain/placement.ts';

/** SQL of a POS's text. It is NULL if the order was erased meanwhile, because the text may contain member data. */
export const unlessErased = (text: string, erasedAt = '(SELECT erased_at FROM known)'): string =>
  `CASE WHEN ${erasedAt} IS NULL THEN ${text} END`;

/** A field that differs. `was` or `is` is absent if the field is missing on that side. */
export type OrderChange = { path: string; was?: unknown; is?: unknown };

/** Finds the platform's changes to an order, except a cancellation. A list whose length differs is one change. */
export function compareOrders(was: CanonicalOrder, is: CanonicalOrder): OrderChange[] {
  // The stored order has no undefined fields. The conversion to JSON also drops those of the new order.
  return differences(asCompared(was), asCompared(JSON.parse(JSON.stringify(is)) as CanonicalOrder), []);
}

function asCompared({ cancelledAt: _at, cancelReason: _reason, ...order }: CanonicalOrder): object {
  return order;
}

function differences(was: unknown, is: unknown, path: readonly string[]): OrderChange[] {
  if (isDeepStrictEqual(was, is)) return [];
  if (isObject(was) && isObject(is) && lengthOf(was) === lengthOf(is)) {
    const fields = [...new Set([...Object.keys(was), ...Object.keys(is)])];
    return fields.flatMap((field) => differences(was[field], is[field], [...path, field]));
  }
  return [{ path: path.join('.'), ...(was !== undefined && { was }), ...(is !== undefined && { is }) }];
}

/** @returns the order with these differences, as `compareOrders` found them */
export function withChanges(order: CanonicalOrder, changes: readonly OrderChange[]): CanonicalOrder {
  const changed = structuredClone(order);
  for (const { path, is } of changes) {
    const [last = '', ...above] = path.split('.').toReversed();
    const parent = above.reduceRight<unknown>((at, field) => (isObject(at) ? at[field] : undefined), changed);
    if (!isObject(parent)) continue;
    if (is === undefined) delete parent[last];
    else parent[last] = is;
  }
  return changed;
}

/** @returns a list's length, or undefined for other objects */
function lengthOf(value: object): number | undefined {
  return Array.isArray(value) ? value.length : undefined;
}

/**
 * Replaces a stored order with the platform's current version. The order must be locked and must not have been
 * sent. A worker about to send it loses the placement, so the next worker sends the new version. If the location
 * changes, all that hangs on it does: the call-out code, because each location counts its own codes, and what `LEAVE` sets.
 * @param deadlineS seconds after `requestedAt` during which the order is worth placing
 */
export async function storeNewest(client: ClientBase, { order, leftOut }: ReadOrder, deadlineS: number): Promise<void> {
  await client.query({ name: 'leave-location', text: LEAVE, values: [order.serviceOrderId, order.locationId] });
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
            integration = CASE WHEN location_id = $2 THEN integration END,
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

/**
 * Order $1 leaves its location for $2: the pause there ends for it, and its problem. `moved_at` tells its notices, links
 * and attempts there from those at the new location.
 */
const LEAVE = `
  UPDATE placements p
  -- guard: move-renews
  SET ${TAKE_OFF_PAUSE}, moved_at = now(), state = 'waiting', problem = NULL, cause = NULL
  FROM (SELECT o.service_order_id, coalesce(${PAUSED_AT}, now()) AS paused_at
        FROM orders o LEFT JOIN locations l USING (location_id)) AS was
  WHERE p.service_order_id = $1 AND was.service_order_id = $1 AND p.location_id <> $2 AND num_nulls(p.finished_at) = 1`;

type LockedOrder = {
  locationId: string;
  ended: boolean;
  integration: string | null;
  state: PlacementState;
  finished: boolean;
  /** True if a createOrder call has begun and its end is not recorded. */
  sending: boolean;
  /** Null once the order is erased. */
  contents: CanonicalOrder | null;
  /** Null if cancellation was never requested. */
  cancelState: CancellationState | null;
  /** True if we cancel the order because it is to fail. */
  isCalledOff: boolean;
  /** True if a worker is processing its cancellation now. */
  cancelling: boolean;
};

/** Locks an order until the transaction ends, then reads it. Returns undefined if it was never fetched. */
export async function lockOrder(client: ClientBase, serviceOrderId: string): Promise<LockedOrder | undefined> {
  // The lock has its own statement. The next statement then sees what was committed while this one waited.
  // guard: cancel-lock
  await client.query('SELECT FROM orders WHERE service_order_id = $1::text FOR UPDATE', [serviceOrderId]);
  const { rows } = await client.query<LockedOrder>({
    name: 'lock-order',
    text: `
      SELECT o.location_id AS "locationId", o.ended_at IS NOT NULL AS ended, o.integration, p.state, p.finished_at IS NOT NULL AS finished,
             EXISTS (SELECT FROM placement_attempts a
                     WHERE a.service_order_id = $1 AND a.ended_at IS NULL AND a.call = 'createOrder') AS sending,
             d.contents, c.state AS "cancelState", c.fails_with IS NOT NULL AS "isCalledOff", coalesce(c.lease_until > now(), false) AS cancelling
      FROM orders o
      JOIN placements p USING (service_order_id)
      LEFT JOIN order_contents d USING (service_order_id)
      LEFT JOIN cancellations c USING (service_order_id)
      WHERE o.service_order_id = $1
      FOR UPDATE OF p`,
    values: [serviceOrderId],
  });
  return rows[0];
}

/** True if there may be a ticket: the POS has the order, or a request may have created it. */
export const mayHaveTicket = ({ state, sending }: LockedOrder): boolean =>
  sending || state === 'sent' || state === 'in_doubt';
