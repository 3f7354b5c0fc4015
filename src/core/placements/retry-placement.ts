import type { Pool } from 'pg';
import { z } from 'zod';
import { memberStateAt, type FulfillmentType } from '../domain/lifecycle.ts';
import type { PlacementState } from '../domain/placement.ts';
import { refused } from '../domain/explain-cause.ts';
import type { Refused } from '../domain/placement-cause.ts';
import { memberNotified } from '../domain/member-notified.ts';
import { RESTART } from '../transitions/placement-sql.ts';

export const Retried = z.object({
  serviceOrderId: z.string(),
  retry: z
    .enum(['due', 'under_way'])
    .meta({ description: 'under_way: a worker is already processing the order, so no retry is needed.' }),
});
export type Retried = z.infer<typeof Retried>;

/**
 * Makes a placement due now instead of after its back-off, or restarts it if it failed before the order was ever read.
 * Workers see the change within a second.
 * @returns a refusal, or undefined if there is no such order
 */
export async function retryPlacement(pool: Pool, serviceOrderId: string): Promise<Retried | Refused | undefined> {
  const { rows } = await pool.query<{
    state: PlacementState;
    finished: boolean;
    underWay: boolean;
    needsResolve: boolean;
    again: boolean;
    rank: number | null;
    fulfillment: FulfillmentType | null;
  }>(
    `WITH was AS MATERIALIZED (
       SELECT state, finished_at IS NOT NULL AS finished, coalesce(lease_until > now(), false) AS under_way,
              next_attempt_at = 'infinity' AS "needsResolve"
       FROM placements WHERE service_order_id = $1 FOR UPDATE
     ), due AS (
       UPDATE placements SET next_attempt_at = now()
       FROM was WHERE service_order_id = $1 AND NOT (was.finished OR was.under_way OR was."needsResolve")
     ), again AS (${RESTART}
       RETURNING 1
     )
     SELECT state, finished, under_way AS "underWay", "needsResolve", EXISTS (SELECT FROM again) AS again, o.rank, o.fulfillment
     FROM was LEFT JOIN orders o ON o.service_order_id = $1`,
    [serviceOrderId],
  );
  const was = rows[0];
  if (was === undefined) return undefined;
  if (was.again) return { serviceOrderId, retry: 'due' };
  if (was.state === 'failed') {
    const { rank, fulfillment } = was;
    const memberState = rank === null ? null : memberStateAt(rank, fulfillment);
    const refusal = refused({ code: 'already_failed' });
    const notified = memberNotified({ placement: 'failed', memberState, isRead: true });
    return { ...refusal, refused: `${refusal.refused}. ${notified}` };
  }
  if (was.state === 'withdrawn') return refused({ code: 'already_over' });
  if (was.finished) return refused({ code: 'already_sent' });
  if (was.underWay) return { serviceOrderId, retry: 'under_way' };
  if (was.needsResolve) return refused({ code: 'needs_resolve' });
  return { serviceOrderId, retry: 'due' };
}
