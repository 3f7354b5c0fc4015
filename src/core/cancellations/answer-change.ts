import type { Pool, PoolClient } from 'pg';
import { z } from 'zod';
import { refused } from '../domain/explain-cause.ts';
import type { Refused } from '../domain/placement-cause.ts';
import { INSERT_SAME_STATUS, nextSequence } from '../live/outbox.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { lockOrder } from './changed-order.ts';

export const ChangeAnswered = z.object({ serviceOrderId: z.string(), change: z.enum(['applied', 'too_late']) });
type ChangeAnswered = z.infer<typeof ChangeAnswered>;

/**
 * Stores whether the restaurant applied the platform's change of an order, and publishes it.
 * @param since the `since` of the change that was shown, so that the answer is not taken for a later change. Without it,
 *   the answer is about the newest
 * @returns a refusal, or undefined if there is no such order
 */
export async function answerChange(
  pool: Pool | PoolClient,
  serviceOrderId: string,
  { answer, since }: { answer: 'done' | 'too_late'; since?: string },
): Promise<ChangeAnswered | Refused | undefined> {
  const change = answer === 'done' ? 'applied' : answer;
  return inTransaction(pool, async (client) => {
    const known = await lockOrder(client, serviceOrderId);
    if (known === undefined) return undefined;
    if (known.ended) return refused({ code: 'already_over' });
    const { rowCount } = await client.query(
      `WITH o AS (
         UPDATE orders SET change = $2, sequence = ${nextSequence('sequence')}
         WHERE service_order_id = $1 AND change = 'not_applied'
           -- guard: change-as-seen
           AND changed_at = coalesce($3::timestamptz, changed_at)
         RETURNING service_order_id, sequence, rank, provider_order_id, changed_at
       ), c AS (
         UPDATE order_changes c SET applied = true
         FROM o WHERE c.service_order_id = $1 AND c.seen_at = o.changed_at AND $2 = 'applied'
       )
       ${INSERT_SAME_STATUS}
       FROM o`,
      [serviceOrderId, change, since ?? null],
    );
    return rowCount === 1 ? { serviceOrderId, change } : refused({ code: 'change_settled' });
  });
}
