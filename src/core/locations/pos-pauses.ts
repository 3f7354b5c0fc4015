import type { Pool } from 'pg';
import { RELEASE_HELD } from './locations.ts';

/**
 * SQL that starts or ends pauses of locations, as their POS systems report. Its query `heard` has the numbers of the
 * webhooks that changed something. The newest report counts. Its time is when it first arrived, so an older report that
 * arrives again, by a replay or from the spill, changes nothing. A pause that has already ended changes nothing either.
 * An operator's pause stays. `endPosPauses` resumes the orders.
 * @param words a function that returns SQL of the reports: rows with the given alias and the columns webhook_nth,
 *   location_id, integration, said_at, until; `until` is NULL if the kitchen takes orders
 */
export const pausingByPos = (words: (alias: string) => string): string => `
word AS (
  SELECT DISTINCT ON (w.location_id, w.integration) w.webhook_nth, w.location_id, w.integration, w.said_at, w.until
  FROM ${words('w')}
  WHERE (w.until > now()) IS NOT FALSE
  ORDER BY w.location_id, w.integration, w.said_at DESC, w.nth DESC
), heard AS (
  UPDATE locations l
  SET pos_said_at = word.said_at,
      pos_paused_at = CASE WHEN word.until IS NULL THEN l.pos_paused_at ELSE coalesce(l.pos_paused_at, now()) END,
      pos_paused_until = CASE WHEN word.until IS NOT NULL THEN word.until WHEN l.pos_paused_at IS NOT NULL THEN now() END
  FROM word
  WHERE l.location_id = word.location_id AND l.integration = word.integration
    AND (l.pos_said_at < word.said_at) IS NOT FALSE
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
