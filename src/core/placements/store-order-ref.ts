import type { ClientBase, Pool } from 'pg';
import { RANK_SENT } from '../domain/lifecycle.ts';
import type { OrderRef } from '../domain/order.ts';
import type { PosId } from '../domain/webhook.ts';
import { insertOutbox } from '../live/outbox.ts';
import { nextSequence } from '../live/sequence-floor.ts';
import { isAwaited } from '../statuses/is-awaited.ts';
import { END_ATTEMPT, attemptEndJson, type AttemptEnd } from './record-attempt.ts';

/**
 * Stores that the ticket is at the POS, with its id; sends `sent` to the member unless the POS was quicker or the order
 * has ended; stops all attempts. It needs no lease: the ticket is there, whoever holds the placement now.
 * @returns the POS id if it became ours just now and events wait for it, and whether it contradicts what we know: the
 *   member was told that the order failed or was cancelled, or the id is another order's
 */
export async function storeOrderRef(
  client: Pool | ClientBase,
  serviceOrderId: string,
  integration: string,
  ref: OrderRef,
  end?: AttemptEnd,
): Promise<{ awaited: PosId[]; conflict: boolean }> {
  const { rows } = await client.query<{ location_id: string; awaited: boolean; conflict: boolean }>({
    name: 'store-order-ref',
    text: `
      WITH ${END_ATTEMPT}, o AS MATERIALIZED (
        SELECT *, CASE WHEN coalesce($5::timestamptz, $6) IS NOT NULL
                       THEN ARRAY[coalesce($7::timestamptz, now()), $5, $6::timestamptz] END AS said
        FROM orders WHERE service_order_id = $1 FOR UPDATE
      ), foreign_id AS MATERIALIZED (
        SELECT FROM o JOIN provider_orders t USING (location_id)
        WHERE t.integration = $3 AND t.provider_order_id = $4 AND t.service_order_id <> $1
      ), p AS (
        UPDATE placements p
        SET state = CASE WHEN p.state IN ('failed', 'withdrawn') THEN p.state ELSE 'sent' END,
            problem = NULL, cause = NULL, failures = 0,
            provider_order_id = coalesce(p.provider_order_id, $4), request_ended_at = now(),
            finished_at = coalesce(p.finished_at, now()), lease_id = NULL, lease_until = NULL
        FROM o WHERE p.service_order_id = o.service_order_id
      ), ids AS (
        INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id)
        SELECT location_id, $3, $4, $1 FROM o WHERE $4::text IS NOT NULL
        ON CONFLICT DO NOTHING
        RETURNING location_id, integration, provider_order_id
      ), u AS (
        UPDATE orders
        SET rank = CASE WHEN o.ended_at IS NULL THEN greatest(o.rank, ${RANK_SENT}) ELSE o.rank END, integration = $3,
            sequence = CASE WHEN o.rank < ${RANK_SENT} AND o.ended_at IS NULL THEN ${nextSequence('o.sequence')}
                            ELSE o.sequence END,
            provider_order_id = coalesce(o.provider_order_id, CASE WHEN NOT EXISTS (SELECT FROM foreign_id) THEN $4 END),
            estimate = greatest(o.estimate, o.said), updated_at = now()
        FROM o WHERE orders.service_order_id = o.service_order_id
      ), x AS (
        ${insertOutbox({
          serviceOrderId: 'service_order_id',
          sequence: nextSequence('sequence'),
          rank: RANK_SENT,
          providerOrderId: '$4',
        })}
        FROM o WHERE rank < ${RANK_SENT} AND ended_at IS NULL
      ), due AS (
        INSERT INTO estimates_due (service_order_id, sequence)
        SELECT service_order_id, sequence FROM o WHERE rank >= ${RANK_SENT} AND said > coalesce(estimate, '{}')
        ON CONFLICT (service_order_id) DO UPDATE SET sequence = excluded.sequence
      )
      SELECT o.location_id, EXISTS (SELECT FROM ids WHERE ${isAwaited('ids')}) AS awaited,
             o.failed_by_us OR EXISTS (SELECT FROM foreign_id) AS conflict
      FROM o`,
    values: [
      serviceOrderId,
      attemptEndJson(end),
      integration,
      ref.providerOrderId ?? null,
      ref.estimatedReadyAt ?? null,
      ref.estimatedDeliveryAt ?? null,
      ref.occurredAt ?? null,
    ],
  });
  const row = rows[0];
  if (row === undefined) throw new Error('there is no such order');
  return {
    awaited:
      ref.providerOrderId !== undefined && row.awaited
        ? [{ locationId: row.location_id, integration, providerOrderId: ref.providerOrderId }]
        : [],
    conflict: row.conflict,
  };
}
