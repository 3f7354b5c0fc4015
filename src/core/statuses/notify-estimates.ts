import type { ClientBase } from 'pg';
import { RANK_END } from '../domain/lifecycle.ts';
import { INSERT_SAME_STATUS, nextSequence } from '../live/outbox.ts';

/** Minimum seconds between two messages of an order that only update its estimate or link. */
export const NOTIFIED_EVERY_S = 60;
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

/** SQL that is true if an estimate is to be sent. */
export const ESTIMATES_DUE = 'EXISTS (SELECT FROM estimates_due WHERE due_at <= now())';

/** Another process may have sent the message already. Only conditions on `d` see the row's latest state. */
const IS_DUE = 'd.service_order_id = ANY (ARRAY(SELECT service_order_id FROM due)) AND d.due_at <= now()';
/** No message of the order has been sent since, and it has not ended. */
const IS_NEWS =
  'd.sequence = ((SELECT jsonb_object_agg(service_order_id, sequence) FROM due) ->> d.service_order_id)::int';
/** The rows are found by their keys: a plan cached while the tables were empty would join all with all. */
const NOTIFY = `
  WITH due AS MATERIALIZED (
    SELECT o.service_order_id, CASE WHEN o.ended_at IS NULL AND o.rank < ${RANK_END} THEN o.sequence END AS sequence
    FROM (SELECT service_order_id FROM estimates_due WHERE due_at <= now() ORDER BY due_at LIMIT ${BATCH}) AS d
    CROSS JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = d.service_order_id FOR UPDATE SKIP LOCKED) AS o
  ), notified AS MATERIALIZED (
    UPDATE estimates_due d SET sequence = NULL, due_at = now() + interval '${NOTIFIED_EVERY_S} s'
    WHERE ${IS_DUE} AND ${IS_NEWS}
    RETURNING service_order_id
  ), over AS (
    DELETE FROM estimates_due d WHERE ${IS_DUE} AND (${IS_NEWS}) IS NOT TRUE
  ), numbered AS (
    UPDATE orders SET sequence = ${nextSequence('sequence')}
    WHERE service_order_id = ANY (ARRAY(SELECT service_order_id FROM notified))
    RETURNING service_order_id, sequence, rank, provider_order_id
  )
  ${INSERT_SAME_STATUS}
  FROM numbered`;
