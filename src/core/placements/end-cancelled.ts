import type { ClientBase, Pool } from 'pg';
import { RANK_CANCELLED, RANK_END, RANK_FAILED } from '../domain/lifecycle.ts';
import { insertOutbox } from '../live/outbox.ts';
import { nextSequence } from '../live/sequence-floor.ts';
import { nameParameters } from '../postgres/name-parameters.ts';
import { IS_OPEN } from './is-open.ts';
import { END_ATTEMPT, END_ATTEMPT_PARAMETERS, attemptEndJson, type AttemptEnd } from './record-attempt.ts';

const { $, valuesOf } = nameParameters(...END_ATTEMPT_PARAMETERS, 'nativeStatus', 'state');

const END_CANCELLED = `
  WITH ${END_ATTEMPT}, o AS MATERIALIZED (
    SELECT *, rank < ${RANK_CANCELLED} AS moves, rank >= ${RANK_END} AND rank < ${RANK_FAILED} AS conflict,
           ${nextSequence('sequence')} AS next_sequence
    FROM orders WHERE service_order_id = ${$.serviceOrderId} FOR UPDATE
  ), p AS (
    UPDATE placements
    SET state = CASE WHEN finished_at IS NULL THEN ${$.state} ELSE state END, finished_at = coalesce(finished_at, now()),
        problem = NULL, cause = NULL, lease_id = NULL, lease_until = NULL
    WHERE service_order_id = ${$.serviceOrderId} AND (SELECT count(*) FROM o) = 1 -- the order's lock first, as everywhere
      AND (${$.state} = 'sent' OR ${IS_OPEN} AND (SELECT ended_at IS NULL FROM o)
                                    -- Whoever slept over its lease knows nothing of a call that began meanwhile.
                                    AND NOT EXISTS (SELECT FROM placement_attempts a
                                                    WHERE a.service_order_id = ${$.serviceOrderId}
                                                      AND a.ended_at IS NULL AND a.call = 'createOrder'))
    RETURNING service_order_id
  ), u AS (
    UPDATE orders
    SET rank = ${RANK_CANCELLED}, reason_code = NULL, item_ids = NULL, sequence = o.next_sequence, updated_at = now(), ended_at = coalesce(o.ended_at, now()),
        -- Whatever a POS says of it from now on, a person should hear: there should be no ticket.
        failed_by_us = o.failed_by_us OR ${$.state} = 'withdrawn'
    FROM o, p WHERE orders.service_order_id = ${$.serviceOrderId} AND o.moves
  ), h AS (
    INSERT INTO status_events (service_order_id, status, native_status, outcome, conflict, sequence)
    SELECT o.service_order_id, 'cancelled', ${$.nativeStatus}, CASE WHEN moves THEN 'applied' ELSE 'duplicate' END,
           conflict, CASE WHEN moves THEN next_sequence END
    FROM o, p
  ), x AS (
    ${insertOutbox({
      serviceOrderId: 'o.service_order_id',
      sequence: 'next_sequence',
      rank: RANK_CANCELLED,
      providerOrderId: 'provider_order_id',
    })}
    FROM o, p WHERE moves
  ), c AS (
    UPDATE cancellations
    SET state = 'cancelled', finished_at = now(), problem = NULL, cause = NULL, lease_id = NULL, lease_until = NULL
    FROM p WHERE cancellations.service_order_id = ${$.serviceOrderId}
  )
  SELECT o.conflict FROM o, p`;

/** Of an order that was never sent. */
export const WITHDRAWN = { nativeStatus: 'withdrawn', state: 'withdrawn' } as const;

/**
 * Ends an order as cancelled, and tells its member: it was withdrawn before it was sent, or its POS or the restaurant says
 * so. It moves the order as an event of the POS would, and finishes its placement and its cancellation.
 * @param about.nativeStatus who says so, for the history
 * @param about.state that of the placement, if it is open: `withdrawn` is only one that is
 * @param about.end of the call that the POS answered
 * @returns whether it contradicts what we know, or undefined if somebody else was quicker
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
