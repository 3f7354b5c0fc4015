import type { ClientBase, Pool } from 'pg';
import { RANK_CANCELLED, RANK_END, RANK_FAILED, RANK_SENT } from '../domain/lifecycle.ts';
import type { OrderRef } from '../domain/order.ts';
import type { PosId } from '../domain/webhook.ts';
import { insertOutbox, nextSequence } from '../live/outbox.ts';
import { isAwaited } from '../statuses/redrive-parked.ts';
import { type AttemptEnd, attemptEndJson, END_ATTEMPT, END_ATTEMPT_PARAMETERS } from './record-attempt.ts';
import { CANCEL_WITHIN_S, type Claim } from '../domain/placement.ts';
import type { PlacementCode, Problem } from '../domain/placement-cause.ts';
import type { ReasonCode } from '../domain/reason-code.ts';
import type { RefusedFor } from '../domain/classify-error.ts';
import { IS_UNFINISHED, lockedFirst, refreshDeferred } from './placement-sql.ts';
import { nameParameters } from '../postgres/sql-rows.ts';

/**
 * Stores that the ticket is at the POS, with its POS id, and stops all attempts. Notifies the member of `sent` unless a
 * POS event was faster or the order has ended. Needs no lease, because the ticket exists no matter which process has
 * claimed the placement now.
 * @returns `awaited`: the POS id, if it is new and stored events wait for it. `conflict`: true if we had ended the
 *   order as failed or withdrawn, or the id belongs to another order
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
      ), look AS (${refreshDeferred('o')}
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

/** Why an order fails: the member's sentence, and codes. */
export type FailsWith = { reason: string } & RefusedFor;

/**
 * Begins to cancel an order that is to fail although it may have a ticket, so that nothing is cooked for a member who was
 * told that the order failed. Has no effect if the claim was lost, or if the order has ended or is being cancelled.
 */
export async function callOff(
  pool: Pool,
  claim: Pick<Claim, 'serviceOrderId' | 'leaseId'>,
  about: FailsWith & Problem,
): Promise<void> {
  await pool.query(
    `WITH o AS MATERIALIZED (
       SELECT FROM orders WHERE service_order_id = $1 AND ended_at IS NULL AND cancellation IS NULL FOR UPDATE
     ), u AS (
       UPDATE orders SET cancellation = 'requested', updated_at = now()
       FROM o, placements p
       WHERE orders.service_order_id = $1 AND p.service_order_id = $1 AND p.lease_id = $2 AND ${IS_UNFINISHED}
       RETURNING orders.service_order_id, orders.location_id
     )
     INSERT INTO cancellations (service_order_id, location_id, requested_by, deadline_at, fails_with)
     SELECT service_order_id, location_id, 'operator', now() + make_interval(secs => ${CANCEL_WITHIN_S}), $3::jsonb FROM u
     ON CONFLICT DO NOTHING`,
    [claim.serviceOrderId, claim.leaseId, failsWith(about)],
  );
}

const failsWith = ({ reason, reasonCode, itemIds, cause }: FailsWith & Problem): FailsWith => ({
  reason,
  reasonCode: reasonCode ?? REASON_CODES[cause.code] ?? 'technical',
  itemIds,
});

/** Reason codes by cause. All other causes are `technical`. */
const REASON_CODES: Partial<Record<PlacementCode, ReasonCode>> = {
  pos_rejected_order: 'other',
  deadline_passed: 'no_answer',
  deadline_passed_in_doubt: 'no_answer',
  repeat_refused: 'other',
};

/**
 * Ends a placement as failed and notifies the member, even if the order expired or was never read. An order that was
 * never read has no row, so its sequence number is in its placement. If a POS event has moved the order beyond `sent`,
 * the order does not change and the member is not notified.
 * @param about.reason the member's sentence
 * @param about.reasonCode the reason as a code. By default it is derived from the cause
 * @param about.problem the operator's sentence. `about.cause` says the same as data
 * @param about.late true if the deadline is the only reason. If the deadline was moved to a later time, nothing happens
 * @returns false if nothing happened
 */
export async function failPlacement(
  pool: Pool,
  claim: Pick<Claim, 'serviceOrderId' | 'leaseId'>,
  about: { late?: boolean; end?: AttemptEnd } & FailsWith & Problem,
): Promise<boolean> {
  const { reason, reasonCode, itemIds } = failsWith(about);
  const { rowCount } = await pool.query({
    name: 'fail-placement',
    text: `
      WITH ${END_ATTEMPT}, o AS MATERIALIZED (
        SELECT * FROM orders WHERE service_order_id = $1 FOR UPDATE
      ), p AS (
        UPDATE placements
        SET state = 'failed', problem = left($5, 500), cause = $7::jsonb, finished_at = now(), lease_id = NULL,
            lease_until = NULL,
            last_notified_sequence = CASE WHEN EXISTS (SELECT FROM o) THEN last_notified_sequence
                                 ELSE ${nextSequence('last_notified_sequence')} END
        WHERE service_order_id = $1 AND lease_id = $3 AND ${IS_UNFINISHED}
          AND (NOT $6::boolean OR deadline_at < now())
          AND ${lockedFirst('o')}
        RETURNING service_order_id, last_notified_sequence
      ), failing AS (
        SELECT o.service_order_id, o.ended_at, ${nextSequence('o.sequence')} AS sequence
        -- guard: early-end-notified
        FROM o, p WHERE o.rank <= ${RANK_SENT}
        UNION ALL
        SELECT service_order_id, NULL, last_notified_sequence FROM p WHERE NOT EXISTS (SELECT FROM o)
      ), u AS (
        UPDATE orders
        SET rank = ${RANK_FAILED}, sequence = f.sequence, reason = left($4, 500),
            reason_code = $8, item_ids = $9::jsonb, failed_by_us = true, updated_at = now(), ended_at = coalesce(f.ended_at, now())
        FROM failing f WHERE orders.service_order_id = f.service_order_id
      ), h AS (
        INSERT INTO status_events (service_order_id, status, native_status, outcome, sequence, reason, reason_code,
                                   item_ids)
        SELECT service_order_id, 'failed', 'not placed', 'applied', sequence, left($4, 500), $8::text, $9::jsonb
        FROM failing
      ), x AS (
        ${insertOutbox({
          serviceOrderId: 'service_order_id',
          sequence: 'sequence',
          rank: RANK_FAILED,
          reason: 'left($4, 500)',
        })}
        FROM failing
      )
      SELECT FROM p`,
    values: [
      claim.serviceOrderId,
      attemptEndJson(about.end),
      claim.leaseId,
      reason,
      about.problem,
      about.late ?? false,
      about.cause,
      reasonCode,
      itemIds === undefined ? null : JSON.stringify(itemIds),
    ],
  });
  return rowCount === 1;
}

/**
 * Ends a placement as withdrawn. The order was never read, so there is no other row. Notifies the member if the platform
 * has cancelled the order, but not if it is not for us.
 */
export async function skipPlacement(
  pool: Pool,
  claim: Pick<Claim, 'serviceOrderId' | 'leaseId'>,
  { problem, cause }: Problem,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `WITH p AS (
       UPDATE placements
       SET state = 'withdrawn', problem = $3, cause = $4::jsonb, finished_at = now(), lease_id = NULL, lease_until = NULL,
           last_notified_sequence = CASE WHEN $5 THEN ${nextSequence('last_notified_sequence')} ELSE last_notified_sequence END
       WHERE service_order_id = $1 AND lease_id = $2 AND ${IS_UNFINISHED}
       RETURNING service_order_id, last_notified_sequence
     ), h AS (
       INSERT INTO status_events (service_order_id, status, native_status, outcome, sequence, reason_code)
       SELECT service_order_id, 'cancelled', '${WITHDRAWN.nativeStatus}', 'applied', last_notified_sequence, 'member_cancelled'
       FROM p WHERE $5
     ), x AS (
       ${insertOutbox({ serviceOrderId: 'service_order_id', sequence: 'last_notified_sequence', rank: RANK_CANCELLED })}
       FROM p WHERE $5
     )
     SELECT FROM p`,
    [claim.serviceOrderId, claim.leaseId, problem, cause, cause.code === 'order_cancelled'],
  );
  return rowCount === 1;
}

const { $, valuesOf } = nameParameters(...END_ATTEMPT_PARAMETERS, 'nativeStatus', 'state');

const END_CANCELLED = `
  WITH ${END_ATTEMPT}, o AS MATERIALIZED (
    SELECT o.*, c.fails_with, fails, to_rank, rank < to_rank AS moves,
           rank >= ${RANK_END} AND rank < ${RANK_FAILED} AS conflict, ${nextSequence('sequence')} AS next_sequence
    FROM orders o LEFT JOIN cancellations c USING (service_order_id)
    CROSS JOIN LATERAL (SELECT c.fails_with IS NOT NULL AS fails) AS how
    CROSS JOIN LATERAL (SELECT CASE WHEN fails THEN ${RANK_FAILED} ELSE ${RANK_CANCELLED} END AS to_rank) AS end_at
    WHERE o.service_order_id = ${$.serviceOrderId} FOR UPDATE OF o
  ), p AS (
    UPDATE placements
    SET state = CASE WHEN finished_at IS NOT NULL THEN state
                     WHEN ${$.state} = 'withdrawn' AND (SELECT fails FROM o) THEN 'failed' ELSE ${$.state} END,
        problem = CASE WHEN (SELECT fails FROM o) THEN problem END, cause = CASE WHEN (SELECT fails FROM o) THEN cause END,
        finished_at = coalesce(finished_at, now()), lease_id = NULL, lease_until = NULL
    WHERE service_order_id = ${$.serviceOrderId} AND ${lockedFirst('o', '= 1')}
      AND (${$.state} = 'sent' OR ${IS_UNFINISHED} AND (SELECT ended_at IS NULL FROM o)
                                    -- Another worker may be in a call. A worker whose lease expired does not know that.
                                    AND NOT EXISTS (SELECT FROM placement_attempts a
                                                    WHERE a.service_order_id = ${$.serviceOrderId}
                                                      AND a.ended_at IS NULL AND a.call = 'createOrder'))
    RETURNING service_order_id
  ), u AS (
    UPDATE orders
    SET rank = o.to_rank, reason = coalesce(o.fails_with ->> 'reason', o.reason),
        reason_code = o.fails_with ->> 'reasonCode', item_ids = o.fails_with -> 'itemIds', sequence = o.next_sequence,
        updated_at = now(), ended_at = coalesce(o.ended_at, now()),
        -- The order should have no ticket, so a later POS event is reported to a person.
        failed_by_us = o.failed_by_us OR o.fails OR ${$.state} = 'withdrawn'
    FROM o, p WHERE orders.service_order_id = ${$.serviceOrderId} AND o.moves
  ), h AS (
    INSERT INTO status_events (service_order_id, status, native_status, outcome, conflict, sequence, reason, reason_code,
                               item_ids)
    SELECT o.service_order_id, CASE WHEN fails THEN 'failed' ELSE 'cancelled' END, ${$.nativeStatus},
           CASE WHEN moves THEN 'applied' ELSE 'duplicate' END, conflict, CASE WHEN moves THEN next_sequence END,
           fails_with ->> 'reason', fails_with ->> 'reasonCode', fails_with -> 'itemIds'
    FROM o, p
  ), x AS (
    ${insertOutbox({
      serviceOrderId: 'o.service_order_id',
      sequence: 'next_sequence',
      rank: 'to_rank',
      providerOrderId: 'provider_order_id',
      reason: "fails_with ->> 'reason'",
    })}
    FROM o, p WHERE moves
  ), c AS (
    UPDATE cancellations
    SET state = 'cancelled', finished_at = now(), problem = NULL, cause = NULL, lease_id = NULL, lease_until = NULL
    FROM p WHERE cancellations.service_order_id = ${$.serviceOrderId}
  )
  SELECT o.conflict FROM o, p`;

/** The argument of `endCancelled` for an order that was never sent. */
export const WITHDRAWN = { nativeStatus: 'withdrawn', state: 'withdrawn' } as const;

/**
 * Ends an order as cancelled, or as failed if it was called off, and notifies its member. The order was withdrawn before
 * it was sent, or the POS or the restaurant cancelled it. Moves the order like a POS event, and finishes its placement
 * and its cancellation.
 * @param about.nativeStatus a text for the history that says who cancelled the order
 * @param about.state the final state of an open placement. With `withdrawn`, a finished placement is not changed
 * @param about.end the end of the POS call that reported the cancellation
 * @returns `conflict`: true if the order was already completed. Undefined if another process was faster
 */
export async function endCancelled(
  client: Pool | ClientBase,
  serviceOrderId: string,
  about: { nativeStatus: string; state: 'withdrawn' | 'sent'; end?: AttemptEnd | undefined },
): Promise<{ conflict: boolean } | undefined> {
  const { rows } = await client.query<{ conflict: boolean }>({
    name: 'end-cancelled',
    text: END_CANCELLED,
    values: valuesOf({
      serviceOrderId,
      attemptEnd: attemptEndJson(about.end),
      nativeStatus: about.nativeStatus,
      state: about.state,
    }),
  });
  return rows[0];
}
