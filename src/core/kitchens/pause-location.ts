import type { Pool } from 'pg';
import { z } from 'zod';

/** SQL of when a location `l` was paused, by an operator or by its POS. */
export const PAUSED_AT = 'least(l.paused_at, l.pos_paused_at)';
/** SQL of when a pause by the POS alone ends. */
export const POS_PAUSED_UNTIL = 'CASE WHEN l.paused_at IS NULL THEN l.pos_paused_until END';
/** SQL of what an operator said about the present pause. A process of the previous version pauses without saying it. */
export const said = (column: string): string => `CASE WHEN l.pause_noted_at >= l.paused_at THEN l.${column} END`;
/** SQL of when an operator's pause of `l` ends automatically. */
export const OPERATOR_PAUSED_UNTIL = said('paused_until');
export const PAUSED_UNTIL = `CASE WHEN l.paused_at IS NULL THEN l.pos_paused_until
  WHEN l.pause_noted_at >= l.paused_at AND l.paused_until IS NOT NULL THEN greatest(l.paused_until, l.pos_paused_until) END`;

export const PausedLocation = z.object({ locationId: z.string(), paused: z.boolean() });

/** An operator's pause. Its end is a time, or a number of minutes from now; without both, the pause has no end. */
export type Pause = {
  by?: string;
  reason?: string | undefined;
  until?: Date | undefined;
  minutes?: number | undefined;
};

/** Pauses a location. Its orders wait. What was said about an earlier pause is replaced. @returns whether it exists */
export async function pauseLocation(
  pool: Pool,
  locationId: string,
  { by, reason, until, minutes }: Pause = {},
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `UPDATE locations
     SET paused_at = coalesce(paused_at, now()), pause_noted_at = coalesce(paused_at, now()), paused_by = $2,
         paused_reason = $3, paused_until = coalesce($4::timestamptz, now() + $5::int * interval '1 minute')
     WHERE location_id = $1`,
    [locationId, by ?? null, reason ?? null, until ?? null, minutes ?? null],
  );
  return rowCount === 1;
}

/** SQL that forgets what an operator said about a pause. */
const FORGET_PAUSE = 'pause_noted_at = NULL, paused_until = NULL, paused_reason = NULL, paused_by = NULL';

/** SQL that ends a busy kitchen of a location `l`. Earlier reports of its POS no longer count. */
export const END_BUSY = `busy_until = NULL, busy_minutes = NULL, busy_reason = NULL, busy_by = NULL,
  pos_busy_until = NULL, pos_busy_minutes = NULL, pos_said_at = greatest(l.pos_said_at, now())`;

/**
 * SQL of the clock of a placement `p`: when it was due at the POS, without the pauses since. An order for later is due an
 * hour before it is wanted. @param wantedAt SQL of when the member wants it; NULL for as soon as possible
 */
export const clockOf = (wantedAt: string): string =>
  `greatest(p.clock_at, p.absent_at, p.signalled_at, ${wantedAt} - interval '1 h')`;

const CLOCK = clockOf('(SELECT o.requested_at FROM orders o WHERE o.service_order_id = p.service_order_id)');
/** SQL of how long a pause since `was.paused_at` has delayed a placement `p`. It has not before the order was due there. */
// guard: paused-since-move
const DELAY = `greatest(now() - greatest(was.paused_at, p.moved_at, ${CLOCK}), interval '0')`;
/** SQL that takes the pause of `was` off the clock of a placement `p`, and off its deadline. */
export const TAKE_OFF_PAUSE = `clock_at = least(now(), ${CLOCK} + ${DELAY}), deadline_at = p.deadline_at + ${DELAY}`;

/**
 * SQL that resumes the orders of locations and takes the pause off their clocks. The caller's query `was` has the
 * locations. If a location's `paused_at` (the start of the pause) is NULL, its orders stay as they are.
 */
export const RELEASE_HELD = `
  UPDATE placements p
  SET next_attempt_at = CASE WHEN p.next_attempt_at = 'infinity' THEN p.next_attempt_at ELSE now() END,
      -- guard: pause-taken-off
      ${TAKE_OFF_PAUSE}
  FROM was
  WHERE p.location_id = was.location_id AND was.paused_at IS NOT NULL AND p.finished_at IS NULL`;

/**
 * Resumes a location that an operator or its POS paused, and extends its orders' deadlines by the pause. Its kitchen is
 * then not busy either. Earlier reports of its POS no longer count.
 * @returns whether the location exists
 */
export async function resumeLocation(pool: Pool, locationId: string): Promise<boolean> {
  const { rows } = await pool.query(
    `WITH was AS (
       SELECT location_id, ${PAUSED_AT} AS paused_at FROM locations l WHERE location_id = $1 FOR UPDATE
     ), resumed AS (
       UPDATE locations l
       SET paused_at = NULL, pos_paused_at = NULL, pos_paused_until = NULL, ${FORGET_PAUSE}, ${END_BUSY}
       FROM was WHERE l.location_id = was.location_id
     ), due AS (${RELEASE_HELD})
     SELECT FROM was`,
    [locationId],
  );
  return rows.length === 1;
}
