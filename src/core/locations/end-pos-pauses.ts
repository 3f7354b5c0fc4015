import type { Pool } from 'pg';
import { LET_GO_ON } from './locations.ts';

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
