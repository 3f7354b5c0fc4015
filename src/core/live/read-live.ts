import type { Pool } from 'pg';
import { RANK_CANCELLED, RANK_FAILED, RANK_PLACED } from '../domain/lifecycle.ts';
import { toLiveMessage, type LiveMessage, type LiveRow } from '../domain/live-message.ts';
import type { StateRow } from '../domain/member-message.ts';
import { jsonObject } from '../postgres/sql-rows.ts';
import { CANCELLATION_TOLD, CANCELLED_UNREAD, LIVE_ROW, ofEvent, reasonCodeAt, NOTIFIED_ESTIMATES } from './outbox.ts';

/** An order's messages after a given one, its state, and whether it has ended. */
export type ReadLive = { messages: LiveMessage[]; state: StateRow; ended: boolean };

type Row = { serviceOrderId: string; ended: boolean; state: StateRow; messages: LiveRow[] };

/**
 * Reads the live messages of several orders in one indexed statement, published or not. Each order has its own sequence
 * after which its messages are read. Erased messages are left out.
 * @param after for each order, the sequence of the last known message: 0 for all messages, undefined for only the state
 * @param joined orders that also have a follower without a known message, whose state then needs its time
 * @returns a map by order, without the orders that no signal ever named
 */
export async function readLive(
  pool: Pool,
  after: ReadonlyMap<string, number | undefined>,
  joined: ReadonlySet<string> = new Set(),
): Promise<Map<string, ReadLive>> {
  const { rows } = await pool.query<Row>({
    name: 'read-live',
    // `OFFSET 0` forces index look-ups: a plan cached while a table was empty would scan it.
    text: `
      SELECT requested.id AS "serviceOrderId", found.ended, found.state, found.messages
      FROM unnest($1::text[], $2::int[], $3::boolean[]) AS requested(id, after, joined)
      CROSS JOIN LATERAL (
        SELECT CASE WHEN ${IS_READ} THEN o.ended_at IS NOT NULL ELSE p.finished_at IS NOT NULL END AS ended,
               ${STATE} AS state,
               (SELECT coalesce(json_agg(${LIVE_ROW} ORDER BY m.sequence), '[]')
                FROM (SELECT requested.id AS service_order_id, notified.*, e.reason, e.occurred_at
                      FROM (SELECT sequence, rank, provider_order_id, applied_at, first_received_at FROM outbox
                            WHERE service_order_id = requested.id AND sequence > requested.after
                            UNION ALL
                            SELECT sequence, rank, provider_order_id, applied_at, first_received_at FROM live_messages
                            WHERE service_order_id = requested.id AND sequence > requested.after) AS notified
                      LEFT JOIN LATERAL (
                        SELECT e.reason, e.occurred_at FROM status_events e
                        WHERE e.service_order_id = requested.id AND e.sequence = notified.sequence OFFSET 0) AS e ON true) AS m
               ) AS messages
        FROM placements p LEFT JOIN orders o USING (service_order_id)
        WHERE p.service_order_id = requested.id
        OFFSET 0
      ) AS found`,
    values: [
      [...after.keys()],
      [...after.values()].map((sequence) => sequence ?? null),
      [...after].map(([id, sequence]) => sequence === undefined || joined.has(id)),
    ],
  });
  return new Map(
    rows.map(({ serviceOrderId, ended, state, messages }) => [
      serviceOrderId,
      { ended, state, messages: messages.map(toLiveMessage) },
    ]),
  );
}

const IS_READ = 'o.service_order_id IS NOT NULL';
/** SQL of the time when an order's last message was applied, if `table` has that message. */
const appliedIn = (table: string): string =>
  `(SELECT applied_at FROM ${table} WHERE service_order_id = requested.id AND sequence = coalesce(o.sequence, p.last_notified_sequence))`;
const RANK = `coalesce(o.rank, CASE WHEN p.state = 'failed' THEN ${RANK_FAILED}
  WHEN ${CANCELLED_UNREAD} THEN ${RANK_CANCELLED} ELSE ${RANK_PLACED} END)`;
/** SQL of a column of the event that ended an order. Only for orders that were never read from the platform. */
const ofUnread = (column: string): string =>
  `CASE WHEN p.finished_at IS NOT NULL THEN ${ofEvent(column, 'requested.id', 'p.last_notified_sequence')} END`;
const STATE_FIELDS: Record<keyof StateRow, string> = {
  sequence: 'coalesce(o.sequence, p.last_notified_sequence)',
  rank: RANK,
  fulfillment: 'o.fulfillment',
  callOutCode: 'o.call_out_code',
  requestedAt: 'o.requested_at',
  cancellation: CANCELLATION_TOLD,
  reason: `CASE WHEN ${IS_READ} THEN o.reason ELSE ${ofUnread('reason')} END`,
  reasonCode: reasonCodeAt(`(${RANK})`, `CASE WHEN ${IS_READ} THEN NULL ELSE ${ofUnread('reason_code')} END`),
  itemIds: `CASE WHEN o.rank >= ${RANK_FAILED} THEN o.item_ids END`,
  ...NOTIFIED_ESTIMATES,
  // Only followers that get no messages need this time here. Each message has its own.
  // guard: time-of-joined
  appliedAt: `CASE WHEN requested.joined THEN coalesce(${appliedIn('outbox')}, ${appliedIn('live_messages')}) END`,
};
const STATE = jsonObject(STATE_FIELDS);
