import type { Pool } from 'pg';
import { z } from 'zod';
import { ALL_LOCATIONS, type Latencies, LATENCY_BOUNDS, quantile } from '../traffic/count-traffic.ts';

const Count = z.int().nonnegative();

const Score = z.object({
  orders: Count.meta({ description: 'Orders that were signalled in this time and reached this integration.' }),
  accepted: Count.meta({ description: 'Orders for which the POS has reported a status.' }),
  acceptanceSeconds: z
    .object({ p50: z.number().nullable(), p95: z.number().nullable() })
    .meta({ description: "Estimated time from sending an order to the POS's first status. Null if there was none." }),
  missing: Count.meta({ description: 'Statuses that a status poll found and no webhook had reported.' }),
  duplicates: Count.meta({ description: 'Events with a status that was already known.' }),
  late: Count.meta({ description: 'Events that came after a later status.' }),
  conflicts: Count.meta({ description: 'Events that contradict the stored order.' }),
  refusals: z.record(z.string(), Count).meta({ description: 'Orders that failed or are held, by cause code.' }),
  downMinutes: Count.meta({
    description: 'Minutes in which the POS of a location was called and answered no call: the sum over the locations.',
  }),
});

/** The results of a vendor's integration, at one location or at all its locations. */
export const Scorecard = z
  .object({
    integration: z.string(),
    locationId: z.string().nullable().meta({ description: 'Null for all locations together.' }),
    day: Score.meta({ description: 'The last 24 hours.' }),
    week: Score.meta({ description: 'The last 7 days.' }),
  })
  .meta({ id: 'Scorecard' });
export type Scorecard = z.infer<typeof Scorecard>;
export const Scorecards = z.object({ scorecards: z.array(Scorecard) });

export const SCORECARDS_MAX = 200;

/**
 * Reads scorecards of whole hours, up to ten minutes old. There is one for each integration, but one for each location
 * if `integration` or `locations` selects them. Scorecards with the most missing webhooks come first.
 */
export async function readScorecards(
  pool: Pool,
  about: { integration?: string | undefined; locations?: readonly string[] | undefined },
): Promise<Scorecard[]> {
  const { integration, locations } = about;
  const { rows } = await pool.query<{ integration: string; locationId: string | null; day: Row; week: Row }>(READ, [
    integration ?? null,
    locations ?? (integration === undefined ? [ALL_LOCATIONS] : null),
  ]);
  return rows.map(({ day, week, ...of }) => ({ ...of, day: toScore(day), week: toScore(week) }));
}

type Row = Omit<z.infer<typeof Score>, 'accepted' | 'acceptanceSeconds'> & { acceptance: Latencies };

function toScore({ acceptance, ...counts }: Row): z.infer<typeof Score> {
  return {
    ...counts,
    accepted: acceptance.reduce((sum, count) => sum + count, 0),
    acceptanceSeconds: { p50: quantile(acceptance, 0.5), p95: quantile(acceptance, 0.95) },
  };
}

/** SQL of one Row for the hours since `since`. */
function scoreSince(since: string): string {
  const sum = (of: string): string => `coalesce(sum(${of}) FILTER (WHERE hour >= ${since}), 0)`;
  const acceptance = [...LATENCY_BOUNDS, Infinity].map((_, nth) => sum(`s.acceptance[${nth + 1}]`));
  return `json_build_object(
    'orders', ${sum('s.orders')}, 'acceptance', json_build_array(${acceptance.join()}), 'missing', ${sum('s.missing')},
    'duplicates', ${sum('s.duplicates')}, 'late', ${sum('s.late')}, 'conflicts', ${sum('s.conflicts')},
    'downMinutes', ${sum('s.down_minutes')},
    'refusals', (SELECT coalesce(json_object_agg(code, times), '{}')
                 FROM (SELECT each.key AS code, sum(each.value::int) AS times
                       FROM unnest(array_agg(refusals) FILTER (WHERE hour >= ${since} AND refusals <> '{}')) AS of_hour,
                            jsonb_each_text(of_hour) AS each
                       GROUP BY 1) AS by_code))`;
}

const DAY = `now() - interval '24 h'`;
const WEEK = `now() - interval '7 d'`;

/** Sums up only the locations with the most missing webhooks. An integration may have thousands of locations. */
const READ = `
  WITH chosen AS (
    SELECT location_id, integration, sum(missing) AS missing, sum(orders) AS orders
    FROM scorecard_hours
    WHERE hour >= ${WEEK} AND ($1::text IS NULL OR integration = $1)
      AND CASE WHEN $2::text[] IS NULL THEN location_id <> '${ALL_LOCATIONS}' ELSE location_id = ANY ($2) END
    GROUP BY 1, 2
    ORDER BY 3 DESC, 4 DESC, 1, 2
    LIMIT ${SCORECARDS_MAX}
  )
  SELECT integration, nullif(location_id, '${ALL_LOCATIONS}') AS "locationId", scores.*
  FROM chosen CROSS JOIN LATERAL (
    SELECT ${scoreSince(DAY)} AS day, ${scoreSince(WEEK)} AS week
    FROM scorecard_hours s
    WHERE s.location_id = chosen.location_id AND s.integration = chosen.integration AND hour >= ${WEEK}
  ) AS scores
  ORDER BY chosen.missing DESC, chosen.orders DESC, 1, 2`;
