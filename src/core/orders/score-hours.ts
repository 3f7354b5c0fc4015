import type { Pool } from 'pg';
import { LOCK_SCORE_HOURS } from '../postgres/locks.ts';
import { LATENCY_BOUNDS } from '../traffic/latency-buckets.ts';

/** Hours before this one that are scored anew: most orders are over within them. */
const HOURS_BEFORE = 2;
/** Longer than a scorecard looks back. */
const KEPT_DAYS = 8;

const BUCKETS = Array.from({ length: LATENCY_BOUNDS.length + 1 }, (_, nth) => nth);

/**
 * Sums up what vendors made of the orders of the last hours. It is made of what is kept of each order, so it is exact,
 * and the same whichever process does it. One at a time.
 */
export async function scoreHours(pool: Pool): Promise<void> {
  await pool.query(SCORE);
}

const hourOf = (time: string): string => `date_bin('1 h', ${time}, 'epoch')`;

const SCORE = `
  WITH turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(${LOCK_SCORE_HOURS}) AS mine
  ), span AS MATERIALIZED (
    SELECT ${hourOf('now()')} - interval '${HOURS_BEFORE} h' AS since
  ), placed AS MATERIALIZED (
    SELECT p.service_order_id, o.location_id, o.integration, ${hourOf('p.signalled_at')} AS hour, p.state, p.finished_at,
           p.cause ->> 'code' AS code
    FROM placements p JOIN orders o ON o.service_order_id = p.service_order_id
    WHERE (SELECT mine FROM turn) AND p.signalled_at >= (SELECT since FROM span) AND o.integration IS NOT NULL
  ), heard AS (
    SELECT location_id, integration, hour, count(*) AS orders, sum(duplicates) AS duplicates, sum(late) AS late,
           sum(conflicts) AS conflicts,
           ARRAY[${BUCKETS.map((nth) => `count(*) FILTER (WHERE bucket = ${nth})`).join()}]::int[] AS acceptance
    FROM placed
    CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE e.outcome = 'duplicate') AS duplicates,
             count(*) FILTER (WHERE e.outcome = 'stale') AS late,
             count(*) FILTER (WHERE e.conflict) AS conflicts,
             min(e.recorded_at) FILTER (WHERE e.outcome = 'applied') AS accepted_at
      FROM status_events e
      WHERE e.service_order_id = placed.service_order_id AND e.webhook_id IS NOT NULL
    ) AS events
    CROSS JOIN LATERAL (
      -- NULL where nothing was said; a webhook may be quicker than the answer to our call.
      SELECT width_bucket(CASE WHEN accepted_at < finished_at THEN 0 ELSE extract(epoch FROM accepted_at - finished_at) END
                          * 1000, ARRAY[${LATENCY_BOUNDS.join()}]::numeric[]) AS bucket
    ) AS took
    GROUP BY 1, 2, 3
  ), refused AS (
    SELECT location_id, integration, hour, jsonb_object_agg(code, times) AS refusals
    FROM (SELECT location_id, integration, hour, code, count(*) AS times
          FROM placed WHERE state IN ('failed', 'held') AND code IS NOT NULL GROUP BY 1, 2, 3, 4) AS by_code
    GROUP BY 1, 2, 3
  ), silent AS (
    SELECT location_id, integration, hour, count(*) AS minutes
    FROM (SELECT placed.location_id, placed.integration, ${hourOf('a.started_at')} AS hour
          FROM placed JOIN placement_attempts a ON a.service_order_id = placed.service_order_id
          WHERE a.ended_at IS NOT NULL
          GROUP BY 1, 2, 3, date_trunc('minute', a.started_at)
          HAVING bool_and(a.outcome IN ('TryAgain', 'unknown'))) AS down
    GROUP BY 1, 2, 3
  ), asked AS (
    SELECT location_id, integration, ${hourOf('received_at')} AS hour, count(*) AS missing
    FROM webhooks
    WHERE asked AND (SELECT mine FROM turn) AND outcome = 'applied' AND replay_of IS NULL
      AND received_at >= (SELECT since FROM span) AND day >= ((SELECT since FROM span) AT TIME ZONE 'UTC')::date
    GROUP BY 1, 2, 3
  ), outdated AS (
    DELETE FROM scorecard_hours WHERE (SELECT mine FROM turn) AND hour < now() - interval '${KEPT_DAYS} d'
  )
  INSERT INTO scorecard_hours (location_id, integration, hour, orders, acceptance, missing, duplicates, late, conflicts,
                               refusals, down_minutes)
  SELECT location_id, integration, hour, coalesce(heard.orders, 0),
         coalesce(heard.acceptance, array_fill(0, ARRAY[${BUCKETS.length}])), coalesce(asked.missing, 0),
         coalesce(heard.duplicates, 0), coalesce(heard.late, 0), coalesce(heard.conflicts, 0),
         coalesce(refused.refusals, '{}'), coalesce(silent.minutes, 0)
  FROM heard
  FULL JOIN refused USING (location_id, integration, hour)
  FULL JOIN silent USING (location_id, integration, hour)
  FULL JOIN asked USING (location_id, integration, hour)
  ON CONFLICT (location_id, integration, hour) DO UPDATE
    SET orders = excluded.orders, acceptance = excluded.acceptance, missing = excluded.missing,
        duplicates = excluded.duplicates, late = excluded.late, conflicts = excluded.conflicts,
        refusals = excluded.refusals, down_minutes = excluded.down_minutes`;
