import type { Pool } from 'pg';
import { inBatches, LOCK_DELETE_UNMATCHED } from '../postgres/transactions.ts';

const BATCH = 1_000;
/** The reason of a webhook that waited in vain. With a reason, it is kept longer than other unmatched ones. */
const WAITED_IN_VAIN = 'its POS id never became ours';

/**
 * Deletes what has matched no order of ours for `keptS` seconds: events that wait for their POS id, and webhooks that
 * were `ignored` or `unmatched`. A `parked` webhook becomes `unmatched`, with a reason, and stays as long as those of
 * our orders, since somebody may look for it.
 * @returns the numbers of events and webhooks deleted
 */
export async function deleteUnmatched(pool: Pool, keptS: number): Promise<{ events: number; webhooks: number }> {
  const deleteRows = (statement: string, values: unknown[]): Promise<number> =>
    inBatches(pool, { lock: LOCK_DELETE_UNMATCHED, batch: BATCH }, async (client) => {
      const { rowCount } = await client.query(statement, values);
      return rowCount ?? 0;
    });
  return {
    events: await deleteRows(EXPIRE_EVENTS, [keptS, WAITED_IN_VAIN]),
    webhooks: await deleteRows(DELETE_WEBHOOKS, [keptS]),
  };
}

const EXPIRE_EVENTS = `
  WITH gone AS (
    DELETE FROM parked_events WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM parked_events WHERE parked_at < now() - make_interval(secs => $1::int)
      ORDER BY parked_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED))
    RETURNING webhook_day, location_id, webhook_id
  ), parked AS MATERIALIZED (
    SELECT DISTINCT g.webhook_day, g.location_id, g.webhook_id
    FROM gone g CROSS JOIN LATERAL (
      SELECT d.outcome FROM webhooks d
      WHERE d.day = g.webhook_day AND d.location_id = g.location_id AND d.id = g.webhook_id
      OFFSET 0
    ) AS d
    WHERE d.outcome = 'parked'
  ), in_vain AS (
    UPDATE webhooks d SET outcome = 'unmatched', reason = $2
    FROM parked p
    WHERE d.day = p.webhook_day AND d.location_id = p.location_id AND d.id = p.webhook_id
  )
  SELECT FROM gone`;

const DELETE_WEBHOOKS = `
  WITH old AS MATERIALIZED (
    SELECT day, location_id, id FROM webhooks
    WHERE outcome IN ('ignored', 'unmatched') AND reason IS NULL
      AND received_at < now() - make_interval(secs => $1::int)
      AND day <= ((now() - make_interval(secs => $1::int)) AT TIME ZONE 'UTC')::date
    ORDER BY received_at LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
  )
  DELETE FROM webhooks d USING old
  WHERE d.day = old.day AND d.location_id = old.location_id AND d.id = old.id`;
