import type { Pool } from 'pg';
import { applyWebhooks } from './apply-webhooks.ts';
import { EVENT_OUTCOMES, type ArrivedEvent, type Conflict, type PosId } from '../domain/webhook.ts';
import { blankWebhooks } from '../retention/erase-members.ts';
import { inTransaction } from '../postgres/in-transaction.ts';
import { LOCK_SWEEP_PARKED, tryLock } from '../postgres/locks.ts';
import { statusAt } from '../domain/lifecycle.ts';

type ParkedRow = {
  event_id: string;
  location_id: string;
  integration: string;
  provider_order_id: string;
  webhook_day: string;
  webhook_id: string;
  rank: number;
  native_status: string;
  reason: string | null;
  occurred_at: string | null;
  erased: boolean;
};

const BATCH = 256;

/**
 * Selects parked events: those of POS ids that just became ours, or all of the last seconds that were left behind, with
 * or without the unmatched ones.
 */
export type Parked = { posIds: readonly PosId[] } | { withinS: number; unmatched: boolean };

export type Redriven = {
  /** Events that continued to their orders. */
  count: number;
  /** Our order by event. */
  serviceOrderIds: (string | undefined)[];
  /** Events that contradict what we know: a person should look. */
  conflicts: Conflict[];
};

/**
 * Applies events that waited for their POS id to become ours. Whoever learns such an id calls this right after its
 * commit. The sweep calls it for events that were parked at that very moment, or whose re-drive died.
 */
export async function redriveParked(pool: Pool, parked: Parked, parkTtlS: number): Promise<Redriven> {
  const total: Redriven = { ...NONE, serviceOrderIds: [], conflicts: [] };
  if ('posIds' in parked && parked.posIds.length === 0) return total;
  for (;;) {
    const { count, serviceOrderIds, conflicts } = await redriveBatch(pool, parked, parkTtlS);
    total.count += count;
    total.serviceOrderIds.push(...serviceOrderIds);
    total.conflicts.push(...conflicts);
    if (count < BATCH) return total;
  }
}

const NONE: Redriven = { count: 0, serviceOrderIds: [], conflicts: [] };

async function redriveBatch(pool: Pool, parked: Parked, parkTtlS: number): Promise<Redriven> {
  return inTransaction(pool, async (client) => {
    // One process sweeps at a time; a re-drive of a learnt id needs no lock.
    if ('withinS' in parked && !(await tryLock(client, LOCK_SWEEP_PARKED))) return NONE;
    const [condition, values] =
      'posIds' in parked
        ? [
            `e.event_id = ANY (ARRAY(
               SELECT w.event_id
               FROM unnest($1::text[], $2::text[], $3::text[]) AS k(location_id, integration, provider_order_id)
               CROSS JOIN LATERAL (
                 SELECT w.event_id FROM parked_events w
                 WHERE w.location_id = k.location_id AND w.integration = k.integration
                   AND w.provider_order_id = k.provider_order_id
                 OFFSET 0
               ) AS w))`,
            [
              parked.posIds.map((id) => id.locationId),
              parked.posIds.map((id) => id.integration),
              parked.posIds.map((id) => id.providerOrderId),
            ],
          ]
        : [
            `e.parked_at > now() - make_interval(secs => $1::int) AND ($2::boolean OR e.outcome = 'parked')`,
            [parked.withinS, parked.unmatched],
          ];
    const { rows } = await client.query<ParkedRow>(
      // Looked up event by event in subqueries: a merge or hash join would read all placements.
      `SELECT e.event_id, e.location_id, e.integration, e.provider_order_id, e.webhook_day::text, e.webhook_id,
              e.rank, e.native_status, e.reason, to_json(e.occurred_at) #>> '{}' AS occurred_at,
              (SELECT o.erased_at IS NOT NULL FROM orders o WHERE o.service_order_id = p.service_order_id) IS TRUE
                AS erased
       FROM parked_events e
       CROSS JOIN LATERAL (
         SELECT known.service_order_id FROM provider_orders known
         WHERE known.location_id = e.location_id AND known.integration = e.integration
           AND known.provider_order_id = e.provider_order_id
         OFFSET 0
       ) AS p
       WHERE ${condition}
       ORDER BY e.event_id LIMIT ${BATCH} FOR UPDATE OF e SKIP LOCKED`,
      values,
    );
    if (rows.length === 0) return NONE;
    const {
      events: outcomes,
      serviceOrderIds,
      conflicts,
    } = await applyWebhooks(client, [], rows.map(toArrived), parkTtlS);
    await client.query(
      `WITH gone AS (DELETE FROM parked_events WHERE event_id = ANY ($1::bigint[]))
       UPDATE webhooks d SET outcome = ($6::text[])[r.outcome]
       FROM (SELECT day, location_id, id, min(array_position($6::text[], outcome)) AS outcome
             FROM unnest($2::date[], $3::text[], $4::uuid[], $5::text[]) AS e(day, location_id, id, outcome)
             GROUP BY day, location_id, id) AS r
       WHERE d.day = r.day AND d.location_id = r.location_id AND d.id = r.id
         AND (d.outcome = 'parked' OR r.outcome < array_position($6::text[], d.outcome))`,
      [
        rows.map((row) => row.event_id),
        rows.map((row) => row.webhook_day),
        rows.map((row) => row.location_id),
        rows.map((row) => row.webhook_id),
        outcomes,
        EVENT_OUTCOMES,
      ],
    );
    const erased = rows.filter((row) => row.erased);
    if (erased.length > 0) await blankWebhooks(client, erased);
    return { count: rows.length, serviceOrderIds, conflicts };
  });
}

function toArrived(row: ParkedRow): ArrivedEvent {
  return {
    webhookId: row.webhook_id,
    locationId: row.location_id,
    integration: row.integration,
    rank: row.rank,
    event: {
      // A newer version's rank may be below the first that a POS reports.
      status: statusAt(row.rank) ?? 'received',
      providerOrderId: row.provider_order_id,
      nativeStatus: row.native_status,
      ...(row.reason !== null && { reason: row.reason }),
      ...(row.occurred_at !== null && { occurredAt: row.occurred_at }),
    },
  };
}
