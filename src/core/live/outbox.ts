import type { Pool } from 'pg';
import { RANK_CANCELLED, RANK_FAILED } from '../domain/lifecycle.ts';
import type { ReasonCode } from '../domain/reason-code.ts';
import type { LiveRow } from '../domain/live-message.ts';
import { jsonObject } from '../postgres/sql-rows.ts';

/** SQL of the POS's latest estimates for an order `o`: when the food is ready, and when it reaches the member. */
export const ESTIMATED = { ready: 'o.estimate[2]', delivery: 'o.estimate[3]' };

/** SQL of the estimates and the tracking link for members. They are NULL when the order has ended. */
export const NOTIFIED_ESTIMATES = {
  estimatedReadyAt: `CASE WHEN o.ended_at IS NULL THEN ${ESTIMATED.ready} END`,
  estimatedDeliveryAt: `CASE WHEN o.ended_at IS NULL THEN ${ESTIMATED.delivery} END`,
  trackingUrl: 'CASE WHEN o.ended_at IS NULL THEN o.tracking[2] END',
};

/** SQL of the estimate that counts for the order's fulfillment. */
export const ESTIMATED_AT = `CASE o.fulfillment WHEN 'delivery' THEN ${ESTIMATED.delivery} ELSE ${ESTIMATED.ready} END`;

/** SQL of the cancellation of an order `o` that its member is told. They hear nothing of one that only we began. */
// guard: call-off-untold
export const CANCELLATION_TOLD = `CASE WHEN o.cancellation IS NOT NULL AND (
    SELECT c.fails_with FROM cancellations c WHERE c.service_order_id = o.service_order_id) IS NULL
  THEN o.cancellation END`;

/** SQL of whether a placement `p` ended because the platform had cancelled its order, before it was ever read. */
export const CANCELLED_UNREAD = `(p.state = 'withdrawn' AND p.cause ->> 'code' IS NOT DISTINCT FROM 'order_cancelled')`;

const MEMBER: ReasonCode = 'member_cancelled';
const RESTAURANT: ReasonCode = 'restaurant_cancelled';
const OTHER: ReasonCode = 'other';

/** SQL of the reason code for who cancelled `o`: the member if the platform requested it, otherwise the restaurant. */
const CANCELLED_BY = `CASE WHEN o.cancellation = 'requested' AND (
    SELECT c.requested_by FROM cancellations c WHERE c.service_order_id = o.service_order_id) = 'platform'
  THEN '${MEMBER}' ELSE '${RESTAURANT}' END`;

/**
 * SQL of the reason code of an order `o`. It is NULL only if the order has neither failed nor been cancelled. If the
 * member requested the cancellation, `restaurant_cancelled` is replaced: a POS may report this code to confirm a
 * request.
 * @param rank SQL of the rank to use; it may be NULL
 * @param own SQL of the reason code that came with this rank. If it is NULL, the order's code is used.
 */
export const reasonCodeAt = (rank: string, own = 'NULL'): string => `CASE
  WHEN ${rank} >= ${RANK_CANCELLED} THEN coalesce(nullif(coalesce(${own}, o.reason_code), '${RESTAURANT}'), ${CANCELLED_BY})
  WHEN ${rank} >= ${RANK_FAILED} THEN coalesce(${own}, o.reason_code, '${OTHER}') END`;

/**
 * SQL of an order's next sequence: above its last one, and above the floor if there is one. A restore or a failover may
 * lose numbers that readers have seen. Readers would then drop new messages with these numbers as repeats.
 * @param last SQL of the order's last sequence
 */
export function nextSequence(last: string): string {
  // The subquery runs once per statement. Without a floor it is null, which `greatest` ignores.
  // guard: sequence-floor
  return `greatest(${last}, (SELECT floor FROM sequence_floor WHERE id)) + 1`;
}

/**
 * Raises the floor above all numbers that readers can have seen, including numbers that this database has lost.
 * Therefore the floor depends on the clock, not on stored rows. It allows twenty numbers a minute. An order needs
 * fewer: it has less than ten status messages, and at most one estimate message a minute.
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
 * SQL that inserts live messages. The caller adds a FROM clause, and runs it in the same transaction as the change that
 * the messages report. Fields that all messages of an order share are read from the order when a message is published.
 * @param message an SQL expression for each column
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

/** The same, for news of an order whose status stays. The caller's FROM clause has the order's columns by their names. */
export const INSERT_SAME_STATUS = insertOutbox({
  serviceOrderId: 'service_order_id',
  sequence: 'sequence',
  rank: 'rank',
  providerOrderId: 'provider_order_id',
});

/**
 * SQL of the waiting messages, the oldest first, without those that are sent once more. It reads at most so many rows that
 * a large repeat does not slow down every look.
 */
export const WAITING = `(
  SELECT * FROM (SELECT service_order_id, applied_at, resent FROM outbox ORDER BY applied_at LIMIT 10000) AS oldest
  WHERE NOT resent) AS waiting`;
export const OLDEST_WAITING = `(SELECT applied_at FROM ${WAITING} LIMIT 1)`;

/** SQL of a column of the event that a message reports. An order without a row in `orders` has it only there. */
export const ofEvent = (column: string, id = 'm.service_order_id', sequence = 'm.sequence'): string => `(
  SELECT e.${column} FROM status_events e WHERE e.service_order_id = ${id} AND e.sequence = ${sequence} LIMIT 1)`;

const LIVE_FIELDS: Record<keyof LiveRow, string> = {
  serviceOrderId: 'm.service_order_id',
  sequence: 'm.sequence',
  locationId: 'o.location_id',
  callOutCode: 'o.call_out_code',
  fulfillment: 'o.fulfillment',
  rank: 'm.rank',
  providerOrderId: 'm.provider_order_id',
  cancellation: CANCELLATION_TOLD,
  change: 'o.change',
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
