import type { Pool } from 'pg';
import { LET_GO_ON } from './locations.ts';

/**
 * SQL that pauses locations by what their POS systems say of their kitchens, or ends that; `heard` has the numbers of the
 * webhooks that were heard. The last word counts, by when it first came: a replay of an earlier one, or one that waited
 * in the spill, moves nothing. Nor does a pause that would be over by now. An operator's pause is untouched.
 * `endPosPauses` lets the orders go on.
 * @param words SQL of rows under an alias: webhook_nth, location_id, integration, said_at, until; the last is NULL if the
 *   kitchen takes orders
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
 * Ends the pauses by POS systems whose time is over, or whose kitchen takes orders again. Orders go on at once, unless an
 * operator has paused the location as well: that pause stays, and counts for them from when the first of both began.
 * @returns the locations whose orders go on
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
  ), due AS (${LET_GO_ON})
  SELECT location_id AS "locationId", integration FROM was WHERE paused_at IS NOT NULL`;
