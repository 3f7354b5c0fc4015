import type { ClientBase } from 'pg';
import { RANK_END } from '../domain/lifecycle.ts';
import { insertOutbox, nextSequence } from '../live/outbox.ts';

/** Seconds between two messages of an order that tell nothing but its estimate or link. */
export const NOTIFIED_EVERY_S = 60;
/** Orders of a round. */
const BATCH = 500;

/**
 * Tells estimates and links that no status tells: with the order's status, and its next sequence. What changes within a
 * minute is held back until its end, and not told at all where a status message has told it meanwhile, or the order has
 * ended.
 *
 * The order's lock comes first, as everywhere. An order that is locked is left to the next round.
 * @returns the number of messages
 */
export async function notifyEstimates(pool: Pick<ClientBase, 'query'>): Promise<number> {
  const { rowCount } = await pool.query({ name: 'tell-estimates', text: TELL });
  return rowCount ?? 0;
}

const TELL = `
  WITH due AS MATERIALIZED (
    SELECT o.service_order_id, o.sequence, o.rank, o.provider_order_id,
           o.ended_at IS NULL AND o.rank < ${RANK_END} AS is_open
    FROM (SELECT service_order_id FROM estimates_due WHERE due_at <= now() ORDER BY due_at LIMIT ${BATCH}) AS d
    CROSS JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = d.service_order_id FOR UPDATE SKIP LOCKED) AS o
  ), told AS MATERIALIZED (
    UPDATE estimates_due d SET sequence = NULL, due_at = now() + interval '${NOTIFIED_EVERY_S} s'
    FROM due
    -- Of a row that another process has told meanwhile, only this sees how it is now.
    WHERE d.service_order_id = due.service_order_id AND d.due_at <= now() AND d.sequence = due.sequence AND is_open
    RETURNING due.service_order_id, due.rank, due.provider_order_id, ${nextSequence('due.sequence')} AS sequence
  ), over AS (
    DELETE FROM estimates_due d USING due
    WHERE d.service_order_id = due.service_order_id AND d.due_at <= now()
      AND (d.sequence = due.sequence AND is_open) IS NOT TRUE
  ), numbered AS (
    UPDATE orders o SET sequence = told.sequence FROM told WHERE o.service_order_id = told.service_order_id
  )
  ${insertOutbox({
    serviceOrderId: 'service_order_id',
    sequence: 'sequence',
    rank: 'rank',
    providerOrderId: 'provider_order_id',
  })}
  FROM told`;
