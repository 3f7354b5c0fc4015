import type { Pool } from 'pg';
import { RANK_CANCELLED, RANK_FAILED } from '../domain/lifecycle.ts';
import type { ReasonCode } from '../domain/reason-code.ts';
import type { LiveRow } from '../domain/live-message.ts';
import { jsonObject } from '../postgres/sql-rows.ts';

/** SQL of when the food of an order `o` is ready, and when it is with the member, as its POS said last. */
export const ESTIMATED = { ready: 'o.estimate[2]', delivery: 'o.estimate[3]' };

/** The same as a member is told it, of an order that goes on, and where it is followed. */
export const NOTIFIED_ESTIMATES = {
  estimatedReadyAt: `CASE WHEN o.ended_at IS NULL THEN ${ESTIMATED.ready} END`,
  estimatedDeliveryAt: `CASE WHEN o.ended_at IS NULL THEN ${ESTIMATED.delivery} END`,
  trackingUrl: 'CASE WHEN o.ended_at IS NULL THEN o.tracking[2] END',
};

/** SQL of the one that the order is due by. */
export const ESTIMATED_AT = `CASE o.fulfillment WHEN 'delivery' THEN ${ESTIMATED.delivery} ELSE ${ESTIMATED.ready} END`;

const MEMBER: ReasonCode = 'member_cancelled';
const RESTAURANT: ReasonCode = 'restaurant_cancelled';
const OTHER: ReasonCode = 'other';

/** SQL of who wanted an order `o` cancelled: whoever asked us to, or else the restaurant. */
const CANCELLED_BY = `CASE WHEN o.cancellation = 'requested' AND (
    SELECT c.requested_by FROM cancellations c WHERE c.service_order_id = o.service_order_id) = 'platform'
  THEN '${MEMBER}' ELSE '${RESTAURANT}' END`;

/**
 * SQL of why an order `o` failed or was cancelled, as a code: never without one, whatever the POS said. A POS that confirms
 * what the member wanted may call it the restaurant's.
 * @param rank SQL of the rank that it is asked for
 * @param own SQL of the code that came with it, where that is not the order's
 */
export const reasonCodeAt = (rank: string, own = 'NULL'): string => `CASE
  WHEN ${rank} < ${RANK_FAILED} THEN NULL
  WHEN ${rank} < ${RANK_CANCELLED} THEN coalesce(${own}, o.reason_code, '${OTHER}')
  ELSE coalesce(nullif(coalesce(${own}, o.reason_code), '${RESTAURANT}'), ${CANCELLED_BY}) END`;

/**
 * SQL of an order's next sequence: above its last one, and above the floor where there is one. A restore or a failover
 * forgets numbers that readers have seen, and they would drop the next messages as repeats.
 * @param last SQL of the order's last sequence
 */
export function nextSequence(last: string): string {
  // Read once a statement. Without a floor it is null, and does not count.
  // guard: sequence-floor
  return `greatest(${last}, (SELECT floor FROM sequence_floor WHERE id)) + 1`;
}

/**
 * Raises the floor above all numbers that readers can have seen, those that this database has forgotten included. So it
 * goes by the clock and not by what is stored: twenty a minute, since an order has fewer messages of its steps than half
 * of that, and one a minute of its estimate.
 * @returns the new floor
 */
export async function raiseSequences(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ floor: number }>(
    `INSERT INTO sequence_floor AS f (floor) VALUES ((extract(epoch FROM now()) / 3)::int)
     ON CONFLICT (id) DO UPDATE SET floor = greatest(f.floor + 20, excluded.floor)
     RETURNING floor`,
  );
  return rows[0]?.floor ?? 0;
}

/**
 * The outbox: live messages, committed together with the change they report. What all messages of an order share is
 * stored only with the order, and read from there when a message is published. An order that was never read has no row.
 */

/**
 * SQL that inserts live messages; a FROM clause follows.
 * @param message SQL expressions
 */
export function insertOutbox(message: {
  serviceOrderId: string;
  sequence: string;
  rank: string | number;
  providerOrderId?: string;
  reason?: string;
  occurredAt?: string;
  firstReceivedAt?: string;
}): string {
  const { serviceOrderId, sequence, rank, providerOrderId = 'NULL', reason = 'NULL' } = message;
  const { occurredAt = 'NULL', firstReceivedAt = 'NULL' } = message;
  return `INSERT INTO outbox (service_order_id, sequence, rank, provider_order_id, reason, occurred_at, first_received_at)
    SELECT ${serviceOrderId}, ${sequence}, ${rank}, ${providerOrderId}, ${reason}, ${occurredAt}, ${firstReceivedAt}`;
}

/** SQL of a column of the event that a message tells. Of an order that was never read, only that has it. */
const ofEvent = (column: string): string => `(
  SELECT e.${column} FROM status_events e
  WHERE e.service_order_id = m.service_order_id AND e.sequence = m.sequence LIMIT 1)`;

const LIVE_FIELDS: Record<keyof LiveRow, string> = {
  serviceOrderId: 'm.service_order_id',
  sequence: 'm.sequence',
  locationId: 'o.location_id',
  callOutCode: 'o.call_out_code',
  fulfillment: 'o.fulfillment',
  rank: 'm.rank',
  providerOrderId: 'm.provider_order_id',
  cancellation: 'o.cancellation',
  reason: 'm.reason',
  reasonCode: reasonCodeAt('m.rank', ofEvent('reason_code')),
  itemIds: `CASE WHEN m.rank >= ${RANK_FAILED} THEN coalesce(${ofEvent('item_ids')}, o.item_ids) END`,
  ...NOTIFIED_ESTIMATES,
  occurredAt: 'm.occurred_at',
  firstReceivedAt: 'm.first_received_at',
  appliedAt: 'm.applied_at',
};

/** SQL of the `LiveRow` of a message `m` and its order `o`, which may be missing. */
export const LIVE_ROW = jsonObject(LIVE_FIELDS);
