import type { Pool } from 'pg';
import { isAnswer } from '../domain/classify-error.ts';
import { TryAgain } from '../domain/errors.ts';
import type { Provider, Registry } from '../domain/provider.ts';
import { nameParameters } from '../postgres/sql-rows.ts';
import { inBatch, LOCK_SUSPECTS } from '../postgres/transactions.ts';
import { askPos, type PosDeps } from '../locations/check-location.ts';
import { findLocation, type DecryptSettings } from '../locations/locations.ts';
import { UNREPORTED } from '../transitions/placement-sql.ts';

/** Maximum number of probes at the same time in one process. */
const PROBES = 300;
const PROBE_S = 5;
/** Seconds after which a probe whose process died is repeated. It is longer than a probe. */
const LEASE_S = 20;

/**
 * Seconds between events. A POS is unreachable if it does not answer two probes that are `again` apart. Afterwards it is
 * probed every `later`. A POS that has just answered a probe is not probed again before `later`. A POS that is not
 * probed is unreachable after two unanswered calls that are `calls` apart, or after one if its vendor counts as down,
 * while orders wait and until `forgotten` after the last call.
 */
export const PROBE_TIMES = { again: 5, later: 30, calls: 10, forgotten: 300 };

type SuspectDeps = {
  pool: Pool;
  registry: Registry;
  /** Locations whose last call had no answer while a vendor counts as down. */
  silentLocations(): readonly { locationId: string }[];
};
type ProbeDeps = PosDeps & { pool: Pool; decryptSettings: DecryptSettings };

/**
 * Finds POS systems that may not answer. A POS is suspected if the last call for an order had no answer, if its vendor
 * counts as down, or if it does not report tickets while others of its vendor do. `settleKitchens` makes the kitchen of a
 * POS unreachable.
 */
export async function findSuspects(deps: SuspectDeps, times = PROBE_TIMES): Promise<void> {
  const probed = [...deps.registry.values()].filter(isProbed).map(({ integration }) => integration);
  const silent = deps.silentLocations().map(({ locationId }) => locationId);
  await inBatch(deps.pool, LOCK_SUSPECTS, (client) =>
    client.query({ name: 'find-suspects', text: FIND_SUSPECTS, values: valuesOf({ probed, silent, ...times }) }),
  );
}

/** Probes suspected POS systems that are due by their `check`, if that proves that orders arrive. */
export async function probeKitchens(
  deps: ProbeDeps,
  { stopping, times = PROBE_TIMES }: { stopping: AbortSignal; times?: typeof PROBE_TIMES },
): Promise<void> {
  const { rows } = await deps.pool.query<{ locationId: string }>({ name: 'claim-probes', text: CLAIM_PROBES });
  await Promise.all(
    rows.map(async ({ locationId }) => {
      const answers = await probe(deps, locationId, stopping);
      // A probe that made no call is repeated when its lease ends.
      if (!stopping.aborted && answers !== undefined) await recordProbe(deps.pool, locationId, answers, times);
    }),
  );
}

const isProbed = ({ check, checkProvesOrders = false }: Provider): boolean => checkProvesOrders && check !== undefined;

/**
 * @returns false if the POS gave no answer, undefined if it was not called. Wrong settings and an unexpected error prove
 *   nothing and count as an answer
 */
async function probe(deps: ProbeDeps, locationId: string, stopping: AbortSignal): Promise<boolean | undefined> {
  try {
    const location = await findLocation(deps.pool, locationId);
    if (location === undefined) return true;
    const { provider, settings } = await deps.decryptSettings(location);
    const limit = { seconds: PROBE_S, sent: false, stopping };
    await askPos(deps, { ...location, provider, settings }, limit, async (context) => provider.check?.(context));
    return true;
  } catch (error) {
    return error instanceof TryAgain ? isAnswer(error) : true;
  }
}

async function recordProbe(
  pool: Pool,
  locationId: string,
  answers: boolean,
  { again, later }: typeof PROBE_TIMES,
): Promise<void> {
  await pool.query(
    `UPDATE kitchens
     SET answered_at = CASE WHEN $2 THEN now() ELSE answered_at END,
         unanswered_at = CASE WHEN NOT $2 THEN coalesce(unanswered_at, now()) END,
         unreachable_since = CASE WHEN NOT $2 AND unanswered_at <= now() - make_interval(secs => $3)
                                  THEN coalesce(unreachable_since, now()) END,
         probe_at = CASE WHEN NOT $2
                         THEN now() + make_interval(secs => CASE WHEN unanswered_at IS NULL THEN $3 ELSE $4 END) END
     WHERE location_id = $1`,
    [locationId, answers, again, later],
  );
}

/** Each vendor gets the same number of probes in a round, so that one whose POS systems are all silent delays no other. */
export const CLAIM_PROBES = `
  UPDATE kitchens SET probed_at = now(), probe_at = now() + make_interval(secs => ${LEASE_S})
  WHERE location_id = ANY (ARRAY(
    SELECT k.location_id
    FROM (
      SELECT location_id FROM kitchens k WHERE probe_at <= now() ORDER BY row_number() OVER (
        PARTITION BY (SELECT integration FROM locations WHERE location_id = k.location_id) ORDER BY probe_at)
    ) AS due
    CROSS JOIN LATERAL (
      SELECT location_id FROM kitchens WHERE location_id = due.location_id AND probe_at <= now() FOR UPDATE SKIP LOCKED
    ) AS k LIMIT ${PROBES}))
  RETURNING location_id AS "locationId"`;

/** SQL that is true if a probe is due. */
export const PROBES_DUE = 'EXISTS (SELECT FROM kitchens WHERE probe_at <= now())';
const TRIED_NOW = `p.finished_at IS NULL AND p.attempts > 0 AND p.state IN ('waiting', 'in_doubt') AND p.location_id IS NOT NULL
      AND p.next_attempt_at BETWEEN now() - interval '5 min' AND now() + interval '5 min'`;
const SENT_THEN = `state = 'sent' AND finished_at BETWEEN now() - interval '11 min' AND now() - interval '10 min'`;
/** SQL that is true if `findSuspects` has something to read. */
export const MAY_SUSPECT = `EXISTS (SELECT FROM placements p WHERE ${TRIED_NOW})
  OR EXISTS (SELECT FROM placements WHERE ${SENT_THEN})
  OR EXISTS (SELECT FROM kitchens WHERE unreachable_since IS NOT NULL) OR EXISTS (SELECT FROM kitchens WHERE probe_at IS NOT NULL)`;

/** SQL that is true if an ended call `a` had an answer, and if it had none. Both are false if nobody knows: see `isAnswer`. */
const ANSWERED = `(a.http_status < 500 OR a.http_status IS NULL
  AND a.outcome IN ('placed', 'absent', 'cancelled', 'requested'))`;
const UNANSWERED = `(a.http_status >= 500 OR a.http_status IS NULL AND a.outcome NOT IN
  ('placed', 'absent', 'cancelled', 'requested', 'not_asked', 'unknown', 'NeedsOperator', 'GiveUp'))`;
/**
 * SQL that is true if a call `a` about a placement `p` tells something of the POS of its location: it was sent, and to
 * that location. The previous version records a call that was not sent as TryAgain.
 */
// guard: told-by-its-calls
const TELLS = `(a.outcome <> 'not_sent' AND (a.started_at > p.moved_at) IS NOT FALSE
  AND (a.http_status IS NULL AND a.attempt = p.attempts AND p.cause ->> 'code' = 'pos_busy') IS NOT TRUE)`;

const { $, valuesOf } = nameParameters('probed', 'silent', 'later', 'calls', 'forgotten');
const seconds = (parameter: string): string => `make_interval(secs => ${parameter}::float8)`;

/** SQL that is true if a kitchen `k` proved after its first unanswered probe that it can be reached. */
const IS_OVER = '(excluded.answered_at > coalesce(k.unanswered_at, k.unreachable_since)) IS TRUE';
/** SQL that is true if a kitchen `k` is to be probed. Probes that began continue until its POS answers. */
const IS_PROBED = `(k.unanswered_at IS NOT NULL AND NOT ${IS_OVER} OR excluded.probe_at IS NOT NULL)`;

/**
 * Each query reads a few rows by an index: orders that are retried now, tickets that are ten minutes old now, and the
 * calls of suspects. `OFFSET 0` forces index lookups, because a plan that was cached while a table was empty would scan it
 * for each suspect. A webhook, an answered call and new settings prove that earlier silence is over.
 */
export const FIND_SUSPECTS = `
  WITH tried AS (
    SELECT DISTINCT ON (p.location_id) p.location_id, ${UNANSWERED} AS unanswered
    FROM placements p
    CROSS JOIN LATERAL (
      SELECT outcome, http_status, ended_at FROM placement_attempts a
      WHERE service_order_id = p.service_order_id AND ended_at IS NOT NULL AND ${TELLS} ORDER BY attempt DESC LIMIT 1
    ) AS a
    WHERE ${TRIED_NOW}
    ORDER BY p.location_id, a.ended_at DESC
  ), heard AS MATERIALIZED (
    SELECT integration FROM location_last_seen WHERE last_seen_at > now() - interval '10 min'
    GROUP BY integration HAVING count(*) >= 3
  ), silent AS (
    SELECT o.location_id
    FROM (SELECT service_order_id, finished_at FROM placements
          WHERE ${SENT_THEN}
          ORDER BY finished_at LIMIT 5000) AS p
    CROSS JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = p.service_order_id OFFSET 0) AS o
    LEFT JOIN LATERAL (SELECT * FROM location_last_seen WHERE location_id = o.location_id OFFSET 0) AS s
      ON s.integration = o.integration
    WHERE ${UNREPORTED}
      AND (s.last_seen_at >= p.finished_at) IS NOT TRUE
      -- Three other locations reported since.
      AND o.integration = ANY (ARRAY(SELECT integration FROM heard))
  ), place AS (
    -- Facts are collected here: to look for each location in all facts would compare each with each.
    SELECT location_id, bool_or(fact = 'down') AS is_down, bool_or(fact IN ('down', 'silent')) AS is_silent
    FROM (
      SELECT location_id, 'tried' FROM tried WHERE unanswered
      UNION ALL SELECT location_id, 'silent' FROM silent
      UNION ALL SELECT unnest(${$.silent}::text[]), 'down'
      UNION ALL SELECT location_id, 'unreachable' FROM kitchens WHERE unreachable_since IS NOT NULL
      UNION ALL SELECT location_id, 'probed' FROM kitchens WHERE probe_at IS NOT NULL
    ) AS known (location_id, fact)
    GROUP BY location_id
  ), known AS MATERIALIZED (
    SELECT l.location_id, l.created_at, l.integration = ANY (${$.probed}::text[]) AS is_probed, proof.at AS answered_at,
           calls.first, calls.last, k.location_id IS NOT NULL AS has_row, k.probe_at IS NOT NULL AS is_probing,
           k.unreachable_since IS NOT NULL AS is_unreachable, place.is_down OR k.unreachable_since IS NOT NULL AS is_known,
           -- The conditions leave Postgres only indexes that begin with the location.
           EXISTS (SELECT FROM placements WHERE location_id = l.location_id AND provider_order_id IS NULL
                     AND num_nulls(finished_at) = 1 AND attempts > 0 AND state || '' IN ('waiting', 'in_doubt') OFFSET 0)
             AS is_retrying,
           place.is_silent OR calls.last IS NOT NULL AS is_suspected
    FROM place
    CROSS JOIN LATERAL (SELECT * FROM locations WHERE location_id = place.location_id OFFSET 0) AS l
    -- guard: suspects-by-index
    LEFT JOIN LATERAL (SELECT * FROM kitchens WHERE location_id = l.location_id OFFSET 0) AS k ON true
    LEFT JOIN LATERAL (SELECT * FROM location_last_seen WHERE location_id = l.location_id OFFSET 0) AS s
      ON s.integration = l.integration
    CROSS JOIN LATERAL (
      SELECT max(a.ended_at) FILTER (WHERE ${ANSWERED}) AS answered_at,
             array_agg(a.ended_at) FILTER (WHERE ${UNANSWERED}) AS unanswered,
             array_agg(CASE WHEN a.http_status = 500 THEN a.service_order_id END) FILTER (WHERE ${UNANSWERED}) AS failing
      FROM (SELECT service_order_id, moved_at, attempts, cause FROM placements
            WHERE location_id = l.location_id AND signalled_at > now() - interval '2 h'
              AND requested_at > now() - interval '1 h' OFFSET 0) AS p
      CROSS JOIN LATERAL (SELECT * FROM placement_attempts WHERE service_order_id = p.service_order_id
                            AND ended_at > now() - interval '1 h' OFFSET 0) AS a
      WHERE ${TELLS}
    ) AS call
    CROSS JOIN LATERAL (SELECT greatest(s.last_seen_at, call.answered_at, l.settings_changed_at, l.created_at) AS at) AS proof
    CROSS JOIN LATERAL (
      SELECT min(at) AS first, max(at) AS last
      FROM unnest(call.unanswered, call.failing) AS u(at, order_id)
      -- A POS that answers 500 to one order alone may take all others.
      WHERE at > greatest(proof.at, k.answered_at) AND (order_id IS NULL OR EXISTS (
        SELECT FROM unnest(call.unanswered, call.failing) AS o(at, order_id)
        WHERE o.order_id <> u.order_id AND o.at > greatest(proof.at, k.answered_at)))
    ) AS calls
  ), probed AS (
    INSERT INTO kitchens AS k (location_id, since, answered_at, probe_at)
    SELECT location_id, created_at, answered_at, CASE WHEN is_suspected THEN now() END
    FROM known WHERE is_probed AND (is_suspected OR has_row)
    ORDER BY location_id
    ON CONFLICT (location_id) DO UPDATE
    SET unanswered_at = CASE WHEN NOT ${IS_OVER} THEN k.unanswered_at END,
        unreachable_since = CASE WHEN NOT ${IS_OVER} THEN k.unreachable_since END,
        probe_at = CASE WHEN ${IS_PROBED} THEN coalesce(k.probe_at, greatest(now(), k.probed_at + ${seconds($.later)})) END
    WHERE ${IS_OVER} OR ${IS_PROBED} <> (k.probe_at IS NOT NULL)
  )
  INSERT INTO kitchens AS k (location_id, since, unreachable_since)
  SELECT location_id, created_at, CASE WHEN is_lasting THEN now() END
  FROM known CROSS JOIN LATERAL (
    -- While a vendor counts as down, few calls are made.
    SELECT ((is_known OR last >= first + ${seconds($.calls)})
              AND (is_retrying AND last IS NOT NULL OR last > now() - ${seconds($.forgotten)})) IS TRUE AS is_lasting
  ) AS silence
  -- ON CONFLICT would lock each row, also if nothing changed.
  WHERE NOT is_probed AND (is_lasting <> is_unreachable OR is_probing)
  ORDER BY location_id
  ON CONFLICT (location_id) DO UPDATE
  SET unreachable_since = CASE WHEN excluded.unreachable_since IS NOT NULL
                               THEN coalesce(k.unreachable_since, now()) END,
      unanswered_at = NULL, probe_at = NULL
  WHERE (excluded.unreachable_since IS NULL) <> (k.unreachable_since IS NULL) OR k.probe_at IS NOT NULL`;
