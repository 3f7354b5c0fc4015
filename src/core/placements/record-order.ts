import type { Pool } from 'pg';
import type { Claim } from '../domain/placement.ts';
import { RANK_PLACED } from '../domain/lifecycle.ts';
import type { CanonicalOrder, KitchenOrder } from '../domain/order.ts';
import type { ReadOrder } from '../domain/read-canonical-order.ts';
import { insertOutbox } from '../live/outbox.ts';
import { nextSequence } from '../live/sequence-floor.ts';
import { CODE_OF_COUNT, countCode } from './call-out-code.ts';

/** An order that has ended may be erased: nothing needs its contents any more. */
export type KnownOrder = { ended: true } | OpenOrder;
export type OpenOrder = { ended: false; order: KitchenOrder; integration: string | null };

/**
 * Stores a fetched order and its live message `placed`, in one commit. From then on the placement has its location and,
 * for an order wanted later, its later deadline. Its messages go on above what was told before it was read. It gets its
 * call-out code here, once.
 * @param deadlineS seconds after `requestedAt` for which the order is worth placing
 * @returns the order as its POS gets it, or undefined if the claim was lost meanwhile
 */
export async function recordOrder(
  pool: Pool,
  claim: Pick<Claim, 'serviceOrderId' | 'leaseId'>,
  { order, leftOut }: ReadOrder,
  deadlineS: number,
): Promise<KitchenOrder | undefined> {
  const { rows } = await pool.query<{ callOutCode: string | null }>({
    name: 'record-order',
    text: `
      WITH p AS (
        UPDATE placements
        SET location_id = $3, failures = 0, missing_since = NULL,
            deadline_at = greatest(deadline_at, $5::timestamptz + make_interval(secs => $6::int))
        WHERE service_order_id = $1 AND lease_id = $2 AND finished_at IS NULL
        RETURNING service_order_id, told_sequence
      ), n AS (
        ${countCode('$3', 'p')}
      ), o AS (
        INSERT INTO orders (service_order_id, location_id, fulfillment, requested_at, left_out, call_out_code, rank,
                            sequence)
        SELECT $1, $3, $4, $5::timestamptz, $8::jsonb, ${CODE_OF_COUNT}, ${RANK_PLACED}, ${nextSequence('told_sequence')}
        FROM p, n
        ON CONFLICT DO NOTHING
        RETURNING service_order_id, sequence, call_out_code
      ), c AS (
        INSERT INTO order_contents (service_order_id, contents) SELECT $1, $7::jsonb FROM o
      ), x AS (
        ${insertOutbox({ serviceOrderId: '$1', sequence: 'sequence', rank: RANK_PLACED })} FROM o
      )
      SELECT o.call_out_code AS "callOutCode" FROM p LEFT JOIN o USING (service_order_id)`,
    values: [
      claim.serviceOrderId,
      claim.leaseId,
      order.locationId,
      order.fulfillment.type,
      order.fulfillment.requestedAt ?? null,
      deadlineS,
      JSON.stringify(order),
      leftOut.length === 0 ? null : JSON.stringify(leftOut),
    ],
  });
  const row = rows[0];
  return row && withCode(order, row.callOutCode);
}

/** @param callOutCode null for an order that a version before recorded */
function withCode(order: CanonicalOrder, callOutCode: string | null): KitchenOrder {
  return { ...order, ...(callOutCode !== null && { callOutCode }) };
}

/**
 * Reads an order stored by an earlier try, with its last integration. Undefined if there is none. A row without
 * contents counts as ended, and is never fetched again.
 */
export async function readOrder(pool: Pool, serviceOrderId: string): Promise<KnownOrder | undefined> {
  const { rows } = await pool.query<{
    contents: CanonicalOrder | null;
    ended: boolean;
    integration: string | null;
    callOutCode: string | null;
  }>({
    name: 'read-order',
    text: `SELECT c.contents, o.ended_at IS NOT NULL AS ended, o.integration, o.call_out_code AS "callOutCode"
           FROM orders o LEFT JOIN order_contents c USING (service_order_id) WHERE service_order_id = $1`,
    values: [serviceOrderId],
  });
  const row = rows[0];
  if (row === undefined) return undefined;
  if (row.ended || row.contents === null) return { ended: true };
  return { ended: false, order: withCode(row.contents, row.callOutCode), integration: row.integration };
}
