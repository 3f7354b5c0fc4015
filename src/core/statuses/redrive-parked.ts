import type { Pool, PoolClient } from 'pg';
import type { Conflict, PosId } from '../domain/webhook.ts';
import { LIFECYCLE, statusAt } from '../domain/lifecycle.ts';
import { withClient } from '../postgres/transactions.ts';
import { blankWebhooks } from '../retention/erase-members.ts';
import { applyingEvents, OUTCOME_BY_CODE } from './apply-events.ts';

/** SQL that is true if parked events wait for a row's POS id. @param posId the alias of the row */
export function isAwaited(posId: string): string {
  // EXISTS is avoided because it could become a join that scans all parked events.
  return `(SELECT true FROM parked_events w
           WHERE w.location_id = ${posId}.location_id AND w.integration = ${posId}.integration
             AND w.provider_order_id = ${posId}.provider_order_id LIMIT 1)`;
}

/** SQL that is true if events are parked. */
export const ARE_PARKED = 'EXISTS (SELECT FROM parked_events ORDER BY parked_at LIMIT 1)';

export const SWEEP_BATCH = 256;
/**
 * The sweep looks back this many seconds before its mark. This is a generous limit for the time from a transaction's
 * start to its commit: a POS id has the start time of its transaction, and a transaction that parks an event may have
 * started before the POS id was committed.
 */
const UNSEEN_S = 60;

/**
 * Finds our POS ids that still have parked events. Either the events were parked while the POS id was being stored, or
 * the process that redrove them died. The search starts at ids stored since the last sweep that found nothing. So its
 * cost depends on the number of new ids, not on the number of parked events whose POS id is never ours.
 *
 * An id whose order is locked is skipped until a later sweep, so that one lock does not delay the other ids.
 */
export async function sweepParked(pool: Pool): Promise<PosId[]> {
  const { rows } = await pool.query<PosId>({ name: 'sweep-parked', text: SWEEP });
  return rows;
}

export const SWEEP = `
  WITH awaited AS MATERIALIZED (
    SELECT p.location_id, p.integration, p.provider_order_id, p.service_order_id
    FROM provider_orders p
    -- The earlier time counts, because the clock may have been set back.
    WHERE p.created_at > (SELECT least(swept_until, now()) - interval '${UNSEEN_S} s' FROM parked_sweep)
      -- guard: sweep-finds
      AND ${isAwaited('p')}
    ORDER BY p.created_at LIMIT ${SWEEP_BATCH}
  ), swept AS (
    UPDATE parked_sweep SET swept_until = now()
    WHERE NOT EXISTS (SELECT FROM awaited) AND swept_until NOT BETWEEN now() - interval '1 s' AND now()
  )
  SELECT location_id AS "locationId", integration, provider_order_id AS "providerOrderId"
  FROM awaited a
  WHERE (SELECT true FROM orders o WHERE o.service_order_id = a.service_order_id FOR UPDATE SKIP LOCKED)`;

export type Redriven = {
  /** Number of parked events that were redriven, whatever their outcomes. */
  count: number;
  serviceOrderId: string | undefined;
  /** Events that contradict the stored order. A person should check them. */
  conflicts: Conflict[];
};

/** SQL of the status of a rank. A newer version may have stored a rank that is below all ranks known here. */
const STATUS_AT_RANK = `CASE ${LIFECYCLE.toReversed()
  .filter((step) => step.status !== null)
  .map((step) => `WHEN rank >= ${step.rank} THEN '${step.status}'`)
  .join(' ')} ELSE 'received' END`;

/** SQL of the parked events in order of arrival. Their webhooks are stored already, so `webhook_nth` is not used. */
const SOURCE = (alias: string): string => `(
    SELECT row_number() OVER (ORDER BY parked_at) AS nth, 0 AS webhook_nth, webhook_id, location_id, integration,
           NULL::text AS service_order_id, provider_order_id, rank, ${STATUS_AT_RANK} AS status, native_status, reason,
           occurred_at, reason_details, estimate, tracking
    FROM gone
  ) AS ${alias}`;

/**
 * SQL of the time when an event of `ruled` was first received. For a replay, its original's time counts. A POS id has
 * one event of each rank, so the rank identifies the event. The query lists all days. `d.day = gone.webhook_day` would
 * let Postgres 18.4 prune partitions at run time. If Postgres then rechecks a row that another transaction changed, it
 * crashes with all its connections.
 */
const FIRST_RECEIVED_AT = `(
    SELECT coalesce((SELECT d.first_received_at FROM webhooks d
                     WHERE d.day = ANY (ARRAY(SELECT webhook_day FROM gone)) AND d.location_id = gone.location_id
                       AND d.id = gone.webhook_id),
                    gone.parked_at)
    FROM gone WHERE gone.rank = ruled.rank)`;

/**
 * One statement, so that no lock remains if this process dies. It deletes the events that it applies: if two processes
 * redrive the same POS id, the second finds no events.
 */
const REDRIVE = `
WITH gone AS (
  DELETE FROM parked_events w
  -- guard: parked-go-on
  WHERE w.location_id = $1::text AND w.integration = $2::text AND w.provider_order_id = $3::text
    AND (SELECT true FROM provider_orders p
         WHERE p.location_id = $1 AND p.integration = $2 AND p.provider_order_id = $3)
  RETURNING *
), ${applyingEvents(SOURCE, FIRST_RECEIVED_AT, { linksIds: false, hasDetails: true, parkTtlS: 0 })}, updated_webhooks AS (
  -- Arrays replace a join. A join's plan, cached while the table was small, would scan the whole table.
  UPDATE webhooks d SET outcome = ${OUTCOME_BY_CODE}[(SELECT min(outcome) FROM ruled WHERE webhook_id = d.id)]
  WHERE d.day = ANY (ARRAY(SELECT webhook_day FROM gone)) AND d.location_id = $1
    AND d.id = ANY (ARRAY(SELECT webhook_id FROM gone))
    AND (d.outcome = 'parked' OR (SELECT min(outcome) FROM ruled WHERE webhook_id = d.id)
                                 < array_position(${OUTCOME_BY_CODE}, d.outcome))
)
SELECT target, webhook_id, rank, native_status, conflict FROM ruled ORDER BY nth`;

/**
 * Applies the parked events of a POS id that is now ours. It is called right after the commit that stores the POS id.
 * It is also called when a sweep finds events that were parked at the same moment, or whose redrive did not finish.
 */
export async function redriveParked(
  pool: Pool | PoolClient,
  { locationId, integration, providerOrderId }: PosId,
): Promise<Redriven> {
  const posId = [locationId, integration, providerOrderId];
  return withClient(pool, async (client) => {
    // If the member's data was erased, the events' webhooks are erased first, because the redrive deletes the events.
    const { rows: erased } = await client.query<{ webhook_day: string; location_id: string; webhook_id: string }>({
      name: 'parked-of-erased',
      text: PARKED_OF_ERASED,
      values: posId,
    });
    if (erased.length > 0) await blankWebhooks(client, erased);
    const { rows } = await client.query<{
      target: string;
      webhook_id: string;
      rank: number;
      native_status: string;
      conflict: boolean;
    }>({ name: 'redrive-parked', text: REDRIVE, values: posId });
    return {
      count: rows.length,
      serviceOrderId: rows[0]?.target,
      conflicts: rows
        .filter((row) => row.conflict)
        .map(({ target, webhook_id: webhookId, rank, native_status: nativeStatus }) => ({
          webhookId,
          locationId,
          integration,
          rank,
          event: { status: statusAt(rank) ?? 'received', providerOrderId, nativeStatus },
          serviceOrderId: target,
        })),
    };
  });
}

const PARKED_OF_ERASED = `
  SELECT w.webhook_day::text, w.location_id, w.webhook_id
  FROM parked_events w
  WHERE w.location_id = $1::text AND w.integration = $2::text AND w.provider_order_id = $3::text
    AND (SELECT o.erased_at IS NOT NULL
         FROM orders o
         WHERE o.service_order_id = (SELECT p.service_order_id FROM provider_orders p
                                     WHERE p.location_id = $1 AND p.integration = $2 AND p.provider_order_id = $3))`;
