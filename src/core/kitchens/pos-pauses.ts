import type { Pool } from 'pg';
import { OPERATOR_PAUSED_UNTIL, PAUSED_AT, RELEASE_HELD } from './pause-location.ts';

/**
 * SQL that starts or ends pauses of locations, sets how busy their kitchens are, and marks a location whose restaurant
 * withdrew our access, as their POS systems report. Its query `heard` has the numbers of the webhooks that changed
 * something.
 *
 * The newest report of a kitchen counts. Its time is when it first arrived, so an older report that arrives again, by a
 * replay or from the spill, changes nothing. A pause that has already ended changes nothing either. An operator's pause
 * stays. `endPauses` resumes the orders. A withdrawal that is older than the present grant changes nothing.
 * @param words a function that returns SQL of the reports: rows with the given alias and the columns webhook_nth,
 *   location_id, integration, said_at, until, busy_until, busy_minutes, revoked_at. Without `revoked_at` it is a report
 *   of a kitchen: `until` is NULL if it takes orders, and `busy_until` is NULL if it is not busy
 */
export const hearingReports = (words: (alias: string) => string): string => `
word AS (
  SELECT DISTINCT ON (w.location_id, w.integration)
         w.webhook_nth, w.location_id, w.integration, w.said_at, w.until, w.busy_until, w.busy_minutes, w.revoked_at
  FROM ${words('w')}
  WHERE (coalesce(w.until, w.busy_until) > now()) IS NOT FALSE
  -- One report of a location per batch: a withdrawal, if there is one, because without access a pause does not matter.
  ORDER BY w.location_id, w.integration, w.revoked_at IS NULL, w.said_at DESC, w.nth DESC
), heard AS (
  UPDATE locations l
  SET pos_said_at = CASE WHEN word.revoked_at IS NULL THEN word.said_at ELSE l.pos_said_at END,
      pos_paused_at = CASE WHEN word.until IS NULL THEN l.pos_paused_at ELSE coalesce(l.pos_paused_at, now()) END,
      pos_paused_until = CASE WHEN word.revoked_at IS NOT NULL THEN l.pos_paused_until
                              WHEN word.until IS NOT NULL THEN word.until
                              WHEN l.pos_paused_at IS NOT NULL THEN now() END,
      pos_busy_until = CASE WHEN word.revoked_at IS NULL THEN word.busy_until ELSE l.pos_busy_until END,
      pos_busy_minutes = CASE WHEN word.revoked_at IS NULL THEN word.busy_minutes ELSE l.pos_busy_minutes END,
      reconnect_needed_at = coalesce(l.reconnect_needed_at, word.revoked_at)
  FROM word
  WHERE l.location_id = word.location_id AND l.integration = word.integration
    AND CASE WHEN word.revoked_at IS NULL THEN (l.pos_said_at < word.said_at) IS NOT FALSE
             ELSE (l.access_granted_at < word.revoked_at) IS NOT FALSE END
  RETURNING word.webhook_nth
)`;

/**
 * Ends pauses whose time is over: by a POS, also if the kitchen takes orders again, and by an operator. Orders resume at
 * once, unless the other of the two has also paused the location. That pause then counts from the start of the earlier one.
 * @returns the locations whose orders resume, and whose pause it was: that of an integration, or `operator`
 */
export async function endPauses(pool: Pool): Promise<{ locationId: string; by: string }[]> {
  const { rows } = await pool.query<{ locationId: string; by: string }>({ name: 'end-pauses', text: END });
  return rows;
}

/** SQL that is true if a pause of a location `l` ends now. */
const IS_OVER = 'l.pos_paused_until <= now() OR l.paused_until <= now() AND l.pause_noted_at >= l.paused_at';
/** SQL that is true if `endPauses` has something to end. */
export const PAUSES_END = `EXISTS (SELECT FROM locations l WHERE ${IS_OVER})`;
const SAID = ['paused_until', 'paused_reason', 'paused_by'];

const END = `
  WITH was AS (
    SELECT location_id, by, of_pos, of_operator, began_at,
           CASE WHEN NOT of_pos AND NOT of_operator THEN began_at END AS paused_at
    FROM (SELECT l.location_id, CASE WHEN l.pos_paused_at IS NULL THEN 'operator' ELSE l.integration END AS by,
                 (l.pos_paused_until > now()) IS TRUE AS of_pos,
                 l.paused_at IS NOT NULL AND (${OPERATOR_PAUSED_UNTIL} <= now()) IS NOT TRUE AS of_operator,
                 ${PAUSED_AT} AS began_at
          FROM locations l
          WHERE ${IS_OVER}
          ORDER BY l.location_id FOR UPDATE SKIP LOCKED) AS l
  ), ended AS (
    UPDATE locations l
    SET pos_paused_at = CASE WHEN was.of_pos THEN was.began_at END,
        pos_paused_until = CASE WHEN was.of_pos THEN l.pos_paused_until END,
        paused_at = CASE WHEN was.of_operator THEN was.began_at END,
        pause_noted_at = CASE WHEN was.of_operator AND l.pause_noted_at >= l.paused_at THEN was.began_at END,
        ${SAID.map((column) => `${column} = CASE WHEN was.of_operator THEN l.${column} END`).join(', ')}
    FROM was WHERE l.location_id = was.location_id
  ), due AS (${RELEASE_HELD})
  SELECT location_id AS "locationId", by FROM was WHERE paused_at IS NOT NULL`;
