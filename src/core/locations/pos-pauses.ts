import type { Pool } from 'pg';
import { RELEASE_HELD } from './locations.ts';

/**
 * SQL that starts or ends pauses of locations, and marks a location whose restaurant withdrew our access, as their POS
 * systems report. Its query `heard` has the numbers of the webhooks that changed something.
 *
 * The newest report of a pause counts. Its time is when it first arrived, so an older report that arrives again, by a
 * replay or from the spill, changes nothing. A pause that has already ended changes nothing either. An operator's pause
 * stays. `endPosPauses` resumes the orders. A withdrawal that is older than the present grant changes nothing.
 * @param words a function that returns SQL of the reports: rows with the given alias and the columns webhook_nth,
 *   location_id, integration, said_at, until, revoked_at. Without `revoked_at` it is a report of a pause, whose `until`
 *   is NULL if the kitchen takes orders
 */
export const hearingReports = (words: (alias: string) => string): string => `
word AS (
  SELECT DISTINCT ON (w.location_id, w.integration)
         w.webhook_nth, w.location_id, w.integration, w.said_at, w.until, w.revoked_at
  FROM ${words('w')}
  WHERE (w.until > now()) IS NOT FALSE
  -- One report of a location per batch: a withdrawal, if there is one, because without access a pause does not matter.
  ORDER BY w.location_id, w.integration, w.revoked_at IS NULL, w.said_at DESC, w.nth DESC
), heard AS (
  UPDATE locations l
  SET pos_said_at = CASE WHEN word.revoked_at IS NULL THEN word.said_at ELSE l.pos_said_at END,
      pos_paused_at = CASE WHEN word.until IS NULL THEN l.pos_paused_at ELSE coalesce(l.pos_paused_at, now()) END,
      pos_paused_until = CASE WHEN word.revoked_at IS NOT NULL THEN l.pos_paused_until
                              WHEN word.until IS NOT NULL THEN word.until
                              WHEN l.pos_paused_at IS NOT NULL THEN now() END,
      reconnect_needed_at = coalesce(l.reconnect_needed_at, word.revoked_at)
  FROM word
  WHERE l.location_id = word.location_id AND l.integration = word.integration
    AND CASE WHEN word.revoked_at IS NULL THEN (l.pos_said_at < word.said_at) IS NOT FALSE
             ELSE (l.access_granted_at < word.revoked_at) IS NOT FALSE END
  RETURNING word.webhook_nth
)`;

/**
 * Ends a pause by a POS if its time is over, or if the kitchen takes orders again. Orders resume at once, unless an
 * operator has also paused the location. The operator's pause then counts from the start of the earlier pause.
 * @returns the locations whose orders resume
 */
export async function endPosPauses(pool: Pool): Promise<{ locationId: string; integration: string }[]> {
  const { rows } = await pool.query<{ locationId: string; integration: string }>({
    name: 'end-pos-pauses',
    text: END,
  });
  return rows;
}

const END = `
  WITH was AS (
    SELECT location_id, integration, CASE WHEN paused_at IS NULL THEN pos_paused_at END AS paused_at
    FROM locations WHERE pos_paused_until <= now()
    ORDER BY location_id FOR UPDATE SKIP LOCKED
  ), ended AS (
    UPDATE locations l
    SET pos_paused_at = NULL, pos_paused_until = NULL,
        paused_at = CASE WHEN l.paused_at IS NOT NULL THEN least(l.paused_at, l.pos_paused_at) END
    FROM was WHERE l.location_id = was.location_id
  ), due AS (${RELEASE_HELD})
  SELECT location_id AS "locationId", integration FROM was WHERE paused_at IS NOT NULL`;
