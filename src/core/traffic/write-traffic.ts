import type { Pool } from 'pg';
import { addLatencies, type Latencies } from './latency-buckets.ts';

/** One counter: what happened in one minute, of one kind. */
export type Traffic = {
  /** Minutes since the epoch, by Postgres's clock; UNKNOWN_MINUTE means the minute of writing. */
  minute: number;
  what: 'webhook' | 'placement' | 'live';
  outcome: string;
  /** ALL_LOCATIONS if it is not known. */
  locationId: string;
  /** Undefined means the location's, which is then `claimed`. */
  integration: string | undefined;
  /** True if the location comes from a URL or the platform, and so may not exist. */
  claimed: boolean;
  count: number;
  /** Latencies, for outcomes that have a duration. */
  latencies: Latencies | undefined;
};

/** Stands for all locations of an integration, unknown ones included. */
export const ALL_LOCATIONS = '';
/** Stands for an integration that does not exist or is not known yet. */
export const UNKNOWN_INTEGRATION = 'unknown';
export const UNKNOWN_MINUTE = 0;
/** Seconds that traffic is kept: a little more than a day, since a reading begins with a whole step. */
export const TRAFFIC_KEPT_S = 25 * 3_600;

/** @returns the first with the counts of both */
export function joinTraffic<Some extends Traffic>(some: Some, others: Traffic): Some {
  const latencies = addLatencies(some.latencies, others.latencies);
  return { ...some, count: some.count + others.count, latencies };
}

/**
 * Adds the counters of one process, by location and for all locations of an integration, so that reading all of them
 * needs as few rows as reading one.
 * @param now the minute
 */
export async function writeTraffic(pool: Pool, counted: readonly Traffic[], now: number): Promise<void> {
  const claimedIds = counted.flatMap(({ claimed, locationId }) => (claimed ? [locationId] : []));
  const integrations =
    claimedIds.length === 0 ? new Map<string, string>() : await integrationsOf(pool, new Set(claimedIds));

  const rows = new Map<string, Traffic & { integration: string }>();
  for (const each of counted) {
    const minute = each.minute === UNKNOWN_MINUTE ? now : each.minute;
    if (minute <= now - TRAFFIC_KEPT_S / 60) continue;
    const integration = each.integration ?? integrations.get(each.locationId) ?? UNKNOWN_INTEGRATION;
    const isOurs = !each.claimed || integrations.has(each.locationId);
    for (const locationId of new Set(isOurs ? [ALL_LOCATIONS, each.locationId] : [ALL_LOCATIONS])) {
      const row = { ...each, minute, integration, locationId };
      const key = [minute, each.what, each.outcome, integration, locationId].join('\0');
      const before = rows.get(key);
      rows.set(key, before === undefined ? row : joinTraffic(before, row));
    }
  }
  const written = [...rows.values()];
  await pool.query({
    name: 'write-traffic',
    text: WRITE,
    values: [
      written.map((row) => row.locationId),
      written.map((row) => row.minute),
      written.map((row) => row.integration),
      written.map((row) => row.what),
      written.map((row) => row.outcome),
      written.map((row) => row.count),
      written.map(({ latencies }) => latencies && `{${latencies.join()}}`),
    ],
  });
}

/** Finds the integrations of those locations that exist. */
async function integrationsOf(pool: Pool, locationIds: ReadonlySet<string>): Promise<Map<string, string>> {
  const { rows } = await pool.query<{ locationId: string; integration: string }>({
    name: 'integrations-of',
    text: `SELECT location_id AS "locationId", integration FROM locations WHERE location_id = ANY ($1::text[])`,
    values: [[...locationIds]],
  });
  return new Map(rows.map(({ locationId, integration }) => [locationId, integration]));
}

/** Ordered by key, so that two processes cannot deadlock. */
const WRITE = `
  INSERT INTO traffic AS t (location_id, minute, integration, what, outcome, count, latencies)
  SELECT w.location_id, to_timestamp(w.minute * 60::float8), w.integration, w.what, w.outcome, w.count, w.latencies::int[]
  FROM unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[], $6::int[], $7::text[])
    AS w(location_id, minute, integration, what, outcome, count, latencies)
  ORDER BY w.location_id, w.minute, w.integration, w.what, w.outcome
  ON CONFLICT (location_id, minute, integration, what, outcome) DO UPDATE
    SET count = t.count + excluded.count,
        latencies = (SELECT array_agg(coalesce(mine, 0) + coalesce(theirs, 0) ORDER BY nth)
                     FROM unnest(t.latencies, excluded.latencies) WITH ORDINALITY AS both_of(mine, theirs, nth))`;
