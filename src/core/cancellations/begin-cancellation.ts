import type { ClientBase } from 'pg';
import { CANCEL_WITHIN_S } from '../domain/placement.ts';
import { insertOutbox } from '../live/outbox.ts';
import { nextSequence } from '../live/sequence-floor.ts';
import { WITHDRAWN, endCancelled } from '../placements/end-cancelled.ts';

/**
 * Begins to cancel an order that is locked: from this commit on no ticket is created. Whoever is about to send it loses
 * the placement. A call that is under way goes on, and what it made is cancelled then. Without a ticket it is withdrawn in
 * the same commit, so that no process of an older version sends it either.
 * @param tells whether the member is told already, since there may be a ticket. Without one the next word is `cancelled`
 */
export async function beginCancellation(
  client: ClientBase,
  serviceOrderId: string,
  { askedBy, tells }: { askedBy: 'platform' | 'operator'; tells: boolean },
): Promise<void> {
  await client.query({
    name: 'begin-cancellation',
    text: `
      WITH o AS (
        UPDATE orders
        SET cancellation = 'requested', updated_at = now(),
            sequence = CASE WHEN $3::boolean THEN ${nextSequence('sequence')} ELSE sequence END
        WHERE service_order_id = $1::text
        RETURNING service_order_id, location_id, rank, sequence, provider_order_id
      ), x AS (
        ${insertOutbox({
          serviceOrderId: 'service_order_id',
          sequence: 'sequence',
          rank: 'rank',
          providerOrderId: 'provider_order_id',
        })}
        FROM o WHERE $3
      ), c AS (
        INSERT INTO cancellations AS c (service_order_id, location_id, asked_by, requested_at, deadline_at)
        -- Under the lock: whatever was sent began before.
        SELECT service_order_id, location_id, $2, clock_timestamp(), now() + make_interval(secs => ${CANCEL_WITHIN_S}) FROM o
        ON CONFLICT (service_order_id) DO UPDATE
        SET asked_by = excluded.asked_by, requested_at = excluded.requested_at, state = 'due', deadline_at = excluded.deadline_at,
            next_attempt_at = now(), failures = 0, problem = NULL, cause = NULL, finished_at = NULL, lease_id = NULL,
            lease_until = NULL
      )
      UPDATE placements
      SET next_attempt_at = now(), lease_id = NULL, lease_until = NULL
      WHERE service_order_id = $1 AND num_nulls(finished_at) = 1
        AND NOT EXISTS (SELECT FROM placement_attempts a WHERE a.service_order_id = $1 AND a.ended_at IS NULL)`,
    values: [serviceOrderId, askedBy, tells],
  });
  if (!tells) await endCancelled(client, serviceOrderId, WITHDRAWN);
}
