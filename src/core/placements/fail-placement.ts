import type { Pool } from 'pg';
import { RANK_FAILED, RANK_SENT } from '../domain/lifecycle.ts';
import type { Claim } from '../domain/placement.ts';
import { insertOutbox } from '../live/outbox.ts';
import { nextSequence } from '../live/sequence-floor.ts';
import type { Why } from '../domain/placement-cause.ts';
import { IS_OPEN } from './is-open.ts';
import { END_ATTEMPT, attemptEndJson, type AttemptEnd } from './record-attempt.ts';

/**
 * Ends a placement, and tells the member why, also where the order has ended unplaced, or was never read: then there is
 * no order row, and the placement counts its messages. A POS event that was quicker wins, and so does somebody who moved
 * the deadline meanwhile.
 * @param about.reason what the member reads
 * @param about.problem what the operator reads, with its cause as data
 * @param about.late it fails for the deadline alone
 * @returns false when it did not fail after all
 */
export async function failPlacement(
  pool: Pool,
  claim: Pick<Claim, 'serviceOrderId' | 'leaseId'>,
  about: { reason: string; late?: boolean; end?: AttemptEnd } & Why,
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
        FROM o, p WHERE o.rank <= ${RANK_SENT}
        UNION ALL
        SELECT service_order_id, NULL, told_sequence FROM p WHERE NOT EXISTS (SELECT FROM o)
      ), u AS (
        UPDATE orders
        SET rank = ${RANK_FAILED}, sequence = f.sequence, reason = left($4, 500),
            failed_by_us = true, updated_at = now(), ended_at = coalesce(f.ended_at, now())
        FROM failing f WHERE orders.service_order_id = f.service_order_id
      ), h AS (
        INSERT INTO status_events (service_order_id, status, native_status, outcome, sequence, reason)
        SELECT service_order_id, 'failed', 'not placed', 'applied', sequence, left($4, 500) FROM failing
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
    ],
  });
  return rowCount === 1;
}
