/**
 * The outbox: live messages, committed together with the change they report. What all messages of an order share is
 * stored only with the order, and read from there when a message is published. An order that was never read has no row.
 */
import { RANK_FAILED } from '../domain/lifecycle.ts';
import type { LiveRow } from '../domain/live-message.ts';
import { jsonObject } from '../postgres/json-object.ts';
import { TOLD_ESTIMATES } from './estimated.ts';
import { reasonCodeAt } from './reason-code-at.ts';

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
  ...TOLD_ESTIMATES,
  occurredAt: 'm.occurred_at',
  firstReceivedAt: 'm.first_received_at',
  appliedAt: 'm.applied_at',
};

/** SQL of the `LiveRow` of a message `m` and its order `o`, which may be missing. */
export const LIVE_ROW = jsonObject(LIVE_FIELDS);
