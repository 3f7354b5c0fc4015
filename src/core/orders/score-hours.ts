import type { Pool } from 'pg';
import { inTransaction, LOCK_SCORE_HOURS, tryLock } from '../postgres/transactions.ts';
import { ALL_LOCATIONS, LATENCY_BOUNDS } from '../traffic/count-traffic.ts';

/** Number of hours before the last run that are scored again. Most orders end within this time. */
const HOURS_BEFORE = 2;
/** If no process ran for a long time, at most this many of the missed hours are scored afterwards. */
const HOURS_MAX = 24;
/** Days for which hours are stored. A scorecard spans seven days. */
const KEPT_DAYS = 8;

const BUCKETS = Array.from({ length: LATENCY_BOUNDS.length + 1 }, (_, nth) => nth);

/**
 * Sums up the vendors' results for the orders of the last hours, hour by hour. It uses only stored orders, so every
 * process computes the same results.
 * @param everyS seconds after which the results are computed again
 */
export async function scoreHours(pool: Pool, everyS: number): Promise<void> {
  await inTransaction(pool, async (client) => {
    if (!(await tryLock(client, LOCK_SCORE_HOURS))) return;
    const { rows } = await client.query<{ hour: Date }>(DUE, [everyS]);
    for (const { hour } of rows) await client.query(SCORE, [hour.toISOString()]);
    if (rows.length === 0) return;
    await client.query(`DELETE FROM scorecard_hours WHERE hour < now() - interval '${KEPT_DAYS} d'`);
    await client.query('UPDATE scorecard_scored SET scored_at = now()');
  });
}

const hourOf = (time: string): string => `date_bin('1 h', ${time}, 'epoch')`;

const DUE = `
  SELECT generate_series(${hourOf(`greatest(scored_at, now() - interval '${HOURS_MAX} h')`)} - interval '${HOURS_BEFORE} h',
                         now(), interval '1 h') AS hour
  FROM scorecard_scored
  -- This is also true if scored_at is in the future. That happens if the clock was set back.
  WHERE scored_at NOT BETWEEN now() - make_interval(secs => $1::int) AND now()`;

/** SQL that groups by location and integration, and by integration over all locations. */
const BOTH = `GROUPING SETS ((location_id, integration), (integration))`;
const PLACE = `coalesce(location_id, '${ALL_LOCATIONS}') AS location_id, integration`;

const SCORE = `
  WITH placed AS MATERIALIZED (
    SELECT p.service_order_id, o.location_id, o.integration, p.state, p.finished_at, p.missed, p.moved_at, p.cause ->> 'code' AS code
    FROM placements p JOIN orders o ON o.service_order_id = p.service_order_id
    WHERE p.signalled_at >= $1::timestamptz AND p.signalled_at < $1::timestamptz + interval '1 h'
      AND o.integration IS NOT NULL
  ), heard AS (
    SELECT ${PLACE}, count(*) AS orders, sum(missed) AS missing, sum(duplicates) AS duplicates, sum(late) AS late,
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
      -- NULL if the POS reported nothing. A webhook may arrive before the answer to our call.
      SELECT width_bucket(CASE WHEN accepted_at < finished_at THEN 0 ELSE extract(epoch FROM accepted_at - finished_at) END
                          * 1000, ARRAY[${LATENCY_BOUNDS.join()}]::numeric[]) AS bucket
    ) AS took
    GROUP BY ${BOTH}
  ), by_code AS (
    SELECT ${PLACE}, code, count(*) AS times
    FROM placed WHERE state IN ('failed', 'held') AND code IS NOT NULL
    GROUP BY ${BOTH}, code
  ), refused AS (
    SELECT location_id, integration, jsonb_object_agg(code, times) AS refusals FROM by_code GROUP BY 1, 2
  ), down AS (
    SELECT placed.location_id, placed.integration
    FROM placed JOIN placement_attempts a ON a.service_order_id = placed.service_order_id
    WHERE a.ended_at IS NOT NULL AND a.outcome <> 'not_sent' AND (a.started_at > placed.moved_at) IS NOT FALSE
    GROUP BY 1, 2, date_trunc('minute', a.started_at)
    HAVING bool_and(a.outcome IN ('TryAgain', 'unknown'))
  ), silent AS (
    SELECT ${PLACE}, count(*) AS minutes FROM down GROUP BY ${BOTH}
  )
  INSERT INTO scorecard_hours AS s (location_id, integration, hour, orders, acceptance, missing, duplicates, late,
                                    conflicts, refusals, down_minutes)
  SELECT location_id, integration, $1::timestamptz, orders, acceptance, missing, duplicates, late, conflicts,
         coalesce(refusals, '{}'), coalesce(minutes, 0)
  FROM heard LEFT JOIN refused USING (location_id, integration) LEFT JOIN silent USING (location_id, integration)
  ON CONFLICT (location_id, integration, hour) DO UPDATE
    SET orders = excluded.orders, acceptance = excluded.acceptance, missing = excluded.missing,
        duplicates = excluded.duplicates, late = excluded.late, conflicts = excluded.conflicts,
        refusals = excluded.refusals, down_minutes = excluded.down_minutes
    WHERE (s.orders, s.acceptance, s.missing, s.duplicates, s.late, s.conflicts, s.refusals, s.down_minutes)
          IS DISTINCT FROM (excluded.orders, excluded.acceptance, excluded.missing, excluded.duplicates, excluded.late,
                            excluded.conflicts, excluded.refusals, excluded.down_minutes)`;
