import type { ClientBase } from 'pg';
import { RANK_END } from '../domain/lifecycle.ts';
import { insertOutbox, nextSequence } from '../live/outbox.ts';

/** Minimum seconds between two messages of an order that only update its estimate or link. */
export const NOTIFIED_EVERY_S = 60;
/** Orders per round. */
const BATCH = 500;

/**
 * Sends messages for estimates and links that no status message carried. A message has the order's status and its next
 * sequence. Changes within NOTIFIED_EVERY_S share one message. An order that has ended gets none.
 *
 * The order's row is locked first. If another transaction has locked it, the order waits for the next round.
 * @returns the number of messages
 */
export async function notifyEstimates(pool: Pick<ClientBase, 'query'>): Promise<number> {
  const { rowCount } = await pool.query({ name: 'notify-estimates', text: NOTIFY });
  return rowCount ?? 0;
}

const NOTIFY = `
  WITH due AS MATERIALIZED (
    SELECT o.service_order_id, o.sequence, o.rank, o.provider_order_id,
           o.ended_at IS NULL AND o.rank < ${RANK_END} AS is_unfinished
    FROM (SELECT service_order_id FROM estimates_due WHERE due_at <= now() ORDER BY due_at LIMIT ${BATCH}) AS d
    CROSS JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = d.service_order_id FOR UPDATE SKIP LOCKED) AS o
  ), notified AS MATERIALIZED (
    UPDATE estimates_due d SET sequence = NULL, due_at = now() + interval '${NOTIFIED_EVERY_S} s'
    FROM due
    -- Another process may have sent the message already. Only conditions on d see the row's latest state.
    WHERE d.service_order_id = due.service_order_id AND d.due_at <= now() AND d.sequence = due.sequence AND is_unfinished
    RETURNING due.service_order_id, due.rank, due.provider_order_id, ${nextSequence('due.sequence')} AS sequence
  ), over AS (
    DELETE FROM estimates_due d USING due
    WHERE d.service_order_id = due.service_order_id AND d.due_at <= now()
      AND (d.sequence = due.sequence AND is_unfinished) IS NOT TRUE
  ), numbered AS (
    UPDATE orders o SET sequence = notified.sequence FROM notified WHERE o.service_order_id = notified.service_order_id
  )
  ${insertOutbox({
    serviceOrderId: 'service_order_id',
    sequence: 'sequence',
    rank: 'rank',
    providerOrderId: 'provider_order_id',
  })}
  FROM notified`;
