import type { ClientBase, Pool } from 'pg';
import type { Why } from '../domain/placement-cause.ts';
import { insertOutbox } from '../live/outbox.ts';
import { nextSequence } from '../live/sequence-floor.ts';
import { END_ATTEMPT, attemptEndJson, type AttemptEnd } from '../placements/record-attempt.ts';
import { unlessErased } from './unless-erased.ts';

/**
 * Ends a cancellation as refused: the order goes on, and its member is told so. One that is over, as its order may be
 * meanwhile, is left as it is.
 * @param about.end of the call that the POS answered
 */
export async function refuseCancellation(
  client: Pool | ClientBase,
  serviceOrderId: string,
  about: Partial<Why> & { end?: AttemptEnd | undefined },
): Promise<void> {
  await client.query({
    name: 'refuse-cancellation',
    text: `
      WITH ${END_ATTEMPT}, known AS MATERIALIZED (
        SELECT ended_at, erased_at FROM orders WHERE service_order_id = $1 FOR UPDATE
      ), c AS (
        UPDATE cancellations
        SET state = 'refused', finished_at = now(), lease_id = NULL, lease_until = NULL, problem = ${unlessErased('left($3, 500)')},
            cause = $4::jsonb
        -- The order's lock first, as everywhere. What has ended meanwhile is finished by that.
        WHERE service_order_id = $1 AND num_nulls(finished_at) = 1 AND (SELECT ended_at IS NULL FROM known)
        RETURNING service_order_id
      ), o AS (
        -- guard: refusal-told
        UPDATE orders SET cancellation = 'refused', sequence = ${nextSequence('sequence')}, updated_at = now()
        FROM c WHERE orders.service_order_id = $1
        RETURNING orders.service_order_id, sequence, rank, provider_order_id
      )
      ${insertOutbox({
        serviceOrderId: 'service_order_id',
        sequence: 'sequence',
        rank: 'rank',
        providerOrderId: 'provider_order_id',
      })}
      FROM o`,
    values: [serviceOrderId, attemptEndJson(about.end), about.problem ?? null, about.cause ?? null],
  });
}
