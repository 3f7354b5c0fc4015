import type { Pool } from 'pg';
import type { PosId } from '../domain/webhook.ts';
import { isAwaited } from './is-awaited.ts';

/** POS ids of a round. */
export const SWEEP_BATCH = 256;
/**
 * Seconds that a statement may lie between its beginning and its commit, with much room: a POS id is as old as the
 * beginning of its transaction, and an event was parked by a look at the database as old as its own.
 */
const UNSEEN_S = 60;

/**
 * Finds POS ids of ours that events wait for: those were parked at the very moment the id was learnt, or their re-drive
 * died. It begins at what was learnt since nothing waited, so its cost depends on the ids that are new, and not on how
 * many events wait for ids that never become ours.
 *
 * An id whose order is locked is left out, and found again: whoever has the lock must not keep all others waiting.
 */
export async function sweepParked(pool: Pool): Promise<PosId[]> {
  const { rows } = await pool.query<PosId>({ name: 'sweep-parked', text: SWEEP });
  return rows;
}

export const SWEEP = `
  WITH awaited AS MATERIALIZED (
    SELECT p.location_id, p.integration, p.provider_order_id, p.service_order_id
    FROM provider_orders p
    -- A clock may be set back.
    WHERE p.created_at > (SELECT least(swept_until, now()) - interval '${UNSEEN_S} s' FROM parked_sweep)
      -- guard: sweep-finds
      AND ${isAwaited('p')}
    ORDER BY p.created_at LIMIT ${SWEEP_BATCH}
  ), swept AS (
    UPDATE parked_sweep SET swept_until = now()
    WHERE NOT EXISTS (SELECT FROM awaited) AND swept_until NOT BETWEEN now() - interval '1 s' AND now()
  )
  SELECT location_id AS "locationId", integration, provider_order_id AS "providerOrderId"
  FROM awaited a
  WHERE (SELECT true FROM orders o WHERE o.service_order_id = a.service_order_id FOR UPDATE SKIP LOCKED)`;
