import type { Pool } from 'pg';
import { RANK_FAILED, RANK_SENT } from '../domain/lifecycle.ts';
import type { Claim } from '../domain/placement.ts';
import { insertOutbox } from '../live/outbox.ts';
import { nextSequence } from '../live/sequence-floor.ts';
import type { PlacementCode, Why } from '../domain/placement-cause.ts';
import type { ReasonCode } from '../domain/reason-code.ts';
import type { RefusedFor } from '../domain/refused-for.ts';
import { IS_OPEN } from './is-open.ts';
import { END_ATTEMPT, attemptEndJson, type AttemptEnd } from './record-attempt.ts';

/** Why an order failed here, by the cause. Of any other, something between the platform and the POS does not work. */
const REASON_CODES: Partial<Record<PlacementCode, ReasonCode>> = {
  pos_rejected_order: 'other',
  deadline_passed: 'no_answer',
};

/**
 * Ends a placement, and tells the member why, also where the order has ended unplaced, or was never read: then there is
 * no order row, and the placement counts its messages. A POS event that was quicker wins, and so does somebody who moved
 * the deadline meanwhile.
 * @param about.reason what the member reads
 * @param about.reasonCode the same for programs; by default that of the cause
 * @param about.problem what the operator reads, with its cause as data
 * @param about.late it fails for the deadline alone
 * @returns false when it did not fail after all
 */
export async function failPlacement(
  pool: Pool,
  claim: Pick<Claim, 'serviceOrderId' | 'leaseId'>,
  about: { reason: string; late?: boolean; end?: AttemptEnd } & RefusedFor & Why,
): Promise<boolean> {
  const { rowCount } = await pool.query({
    name: 'fail-placement',
    text: `
      WITH ${END_ATTEMPT}, o AS MATERIALIZED (
        SELECT * FROM orders WHERE service_order_id = $1 FOR UPDATE
      ), p AS (
        UPDATE placements
        SET state = 'failed', problem = left($5, 500), cause = $7::jsonb, finished_at = now(), lease_id = NULL,
            lease_until = NULL,
            told_sequence = CASE WHEN EXISTS (SELECT FROM o) THEN told_sequence
                                 ELSE ${nextSequence('told_sequence')} END
        WHERE service_order_id = $1 AND lease_id = $3 AND ${IS_OPEN}
          AND (NOT $6::boolean OR deadline_at < now())
          AND (SELECT count(*) FROM o) >= 0 -- the order's lock first, as everywhere
        RETURNING service_order_id, told_sequence
      ), failing AS (
        SELECT o.service_order_id, o.ended_at, ${nextSequence('o.sequence')} AS sequence
        -- guard: told-of-early-end
        FROM o, p WHERE o.rank <= ${RANK_SENT}
        UNION ALL
        SELECT service_order_id, NULL, told_sequence FROM p WHERE NOT EXISTS (SELECT FROM o)
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
      about.reason,
      about.problem,
      about.late ?? false,
      about.cause,
      about.reasonCode ?? REASON_CODES[about.cause.code] ?? 'technical',
      about.itemIds === undefined ? null : JSON.stringify(about.itemIds),
    ],
  });
  return rowCount === 1;
}
