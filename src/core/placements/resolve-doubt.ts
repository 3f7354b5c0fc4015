/** An operator's decision on an order in doubt, after checking the POS. */
import type { Pool, PoolClient } from 'pg';
import { z } from 'zod';
import { inTransaction } from '../postgres/transactions.ts';
import { endCancelled, storeOrderRef, WITHDRAWN } from '../transitions/placement-outcomes.ts';
import { LEASE_S, type PlacementState } from '../domain/placement.ts';
import type { OrderRef } from '../domain/order.ts';
import { describeCause, refused, problemOf } from '../domain/explain-cause.ts';
import type { Refused } from '../domain/placement-cause.ts';
import { redriveParked } from '../statuses/redrive-parked.ts';
import { endingCalls } from '../transitions/placement-sql.ts';
import { LOOK_UP_AFTER_S } from './settle-doubt.ts';

export const Resolved = z.object({
  serviceOrderId: z.string(),
  state: z
    .enum(['sent', 'waiting', 'withdrawn'])
    .meta({ description: 'withdrawn: there is no ticket, and cancellation was requested.' }),
  redriven: z
    .int()
    .exactOptional()
    .meta({ description: 'Number of stored events that waited for the POS id and were applied now.' }),
  late: z.boolean().exactOptional().meta({ description: 'The deadline has passed, so the order fails now.' }),
});
type Resolved = Required<z.infer<typeof Resolved>>;

/** SQL that ends the calls whose process died. */
const CLOSE_CALLS = `${endingCalls('was', `'${describeCause({ code: 'process_died' })}'`)} AND was.unfinished`;

const WAS_UNFINISHED = `p.state = 'in_doubt' AND p.finished_at IS NULL AND (p.lease_until IS NULL OR p.lease_until <= now())`;

/** SQL of when the last request ended. The request of a process that died may have lasted as long as its lease. */
const ENDED = `greatest(p.request_ended_at, (SELECT p.lease_until FROM placement_attempts a
  WHERE a.service_order_id = p.service_order_id AND a.ended_at IS NULL AND a.call = 'createOrder' LIMIT 1))`;
/** The seconds until a missing ticket proves that the last request created none. */
// guard: absent-after-death
const ABSENT_IN_S = `ceil(extract(epoch FROM ${ENDED} - clock_timestamp()))::int + ${LOOK_UP_AFTER_S}`;

/**
 * Resolves a doubt: the ticket exists. Continues as if the POS had just accepted the order. Applies the events that
 * waited for the POS id.
 * @param ref the ticket's POS id. Empty if the operator does not know it
 * @returns a refusal, or undefined if there is no such order
 */
export async function resolveThere(
  pool: Pool | PoolClient,
  serviceOrderId: string,
  ref: OrderRef,
): Promise<Omit<Resolved, 'late'> | Refused | undefined> {
  // This claims the placement, so that no worker begins a call before the decision is stored.
  const { rows } = await pool.query<Doubt & { integration: string | null; owner: string | null }>(
    `WITH was AS MATERIALIZED (
       SELECT p.service_order_id, p.state, ${WAS_UNFINISHED} AS unfinished, o.integration,
              (SELECT i.service_order_id FROM provider_orders i
               WHERE i.location_id = o.location_id AND i.integration = o.integration AND i.provider_order_id = $2
                 AND i.service_order_id <> $1) AS owner
       FROM placements p LEFT JOIN orders o USING (service_order_id)
       WHERE p.service_order_id = $1 FOR UPDATE OF p
     ), closed AS (${CLOSE_CALLS} AND was.owner IS NULL
     ), claimed AS (
       UPDATE placements SET lease_id = gen_random_uuid(), lease_until = now() + make_interval(secs => ${LEASE_S})
       FROM was WHERE placements.service_order_id = $1 AND was.unfinished AND was.owner IS NULL
     )
     SELECT state, unfinished, integration, owner FROM was`,
    [serviceOrderId, ref.providerOrderId ?? null],
  );
  const was = rows[0];
  if (was === undefined) return undefined;
  if (!was.unfinished) return whyNot(was);
  if (was.owner !== null) {
    return refused({ code: 'pos_id_taken', providerOrderId: ref.providerOrderId ?? '', serviceOrderId: was.owner });
  }
  if (was.integration === null) return refused({ code: 'never_sent' });
  const { awaited } = await storeOrderRef(pool, serviceOrderId, was.integration, ref);
  let redriven = 0;
  for (const posId of awaited) {
    // An error is ignored here. The decision is stored, and the periodic sweep redrives the events.
    redriven += await redriveParked(pool, posId).then(
      ({ count }) => count,
      () => 0,
    );
  }
  return { serviceOrderId, state: 'sent', redriven };
}

/**
 * Resolves a doubt: there is no ticket. The placement is retried at once as if nothing had been sent, or fails if its
 * deadline has passed. If the order is to be cancelled, it is withdrawn instead. Is refused for a minute after the last
 * request, because the POS may still create the ticket.
 * @returns a refusal, or undefined if there is no such order
 */
export async function resolveNotThere(
  pool: Pool | PoolClient,
  serviceOrderId: string,
): Promise<Omit<Resolved, 'redriven'> | Refused | undefined> {
  const { problem, cause } = problemOf({ code: 'no_ticket_seen' });
  return inTransaction(pool, async (client) => {
    // Lock the order's row before the placement's row.
    const known = await client.query<{ cancelled: boolean }>(
      'SELECT cancellation IS NOT NULL AS cancelled FROM orders WHERE service_order_id = $1::text FOR UPDATE',
      [serviceOrderId],
    );
    const { rows } = await client.query<Doubt & { late: boolean; early: number }>(
      `WITH was AS MATERIALIZED (
         SELECT p.service_order_id, p.state, now() > p.deadline_at AS late, CASE WHEN ${WAS_UNFINISHED} THEN early ELSE 0 END AS early,
                -- guard: absent-too-early
                ${WAS_UNFINISHED} AND early <= 0 AS unfinished
         FROM placements p, LATERAL (SELECT coalesce(${ABSENT_IN_S}, 0) AS early) AS wait
         WHERE p.service_order_id = $1 FOR UPDATE OF p
       ), closed AS (${CLOSE_CALLS}
       ), freed AS (
         UPDATE placements
         SET state = 'waiting', problem = $2, cause = $3::jsonb, failures = 0, absent_at = clock_timestamp(),
             next_attempt_at = now(), request_ended_at = NULL, lease_id = NULL, lease_until = NULL
         FROM was WHERE placements.service_order_id = $1 AND was.unfinished
       )
       SELECT state, unfinished, late, early FROM was`,
      [serviceOrderId, problem, cause],
    );
    const was = rows[0];
    if (was === undefined) return undefined;
    const { early: seconds } = was;
    if (!was.unfinished) return seconds > 0 ? refused({ code: 'absent_too_early', seconds }) : whyNot(was);
    const isWithdrawn = known.rows[0]?.cancelled === true && (await endCancelled(client, serviceOrderId, WITHDRAWN));
    return isWithdrawn
      ? { serviceOrderId, state: 'withdrawn', late: false }
      : { serviceOrderId, state: 'waiting', late: was.late };
  });
}

type Doubt = { state: PlacementState; unfinished: boolean };

function whyNot({ state }: Doubt): Refused {
  return refused(state === 'in_doubt' ? { code: 'call_under_way' } : { code: 'not_in_doubt', state });
}
