import type { Pool } from 'pg';
import type { Now } from '../postgres/database-clock.ts';
import type { Observe, WebhookRefused } from '../domain/observed.ts';
import { Id } from '../domain/order.ts';

/**
 * Upper bounds of the buckets in milliseconds, up to the longest placement; one more bucket holds the rest. Counts are
 * stored by position, so a change of the bounds would mix up the figures of a day.
 */
export const LATENCY_BOUNDS: readonly number[] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]
  .flatMap((decade) => [1, 2, 3, 5, 7].map((step) => step * decade))
  .filter((bound) => bound <= 5_000_000);

export type Latencies = number[];

export function countLatency(latencies: Latencies, milliseconds: number): void {
  const found = LATENCY_BOUNDS.findIndex((bound) => milliseconds <= bound);
  const nth = found === -1 ? LATENCY_BOUNDS.length : found;
  latencies[nth] = (latencies[nth] ?? 0) + 1;
}

export function noLatencies(): Latencies {
  return Array.from({ length: LATENCY_BOUNDS.length + 1 }, () => 0);
}

/** Adds two lists. Either may lack buckets at its end. */
function addLatencies(some: Latencies | undefined, others: Latencies | undefined): Latencies | undefined {
  if (some === undefined || others === undefined) return some ?? others;
  return noLatencies().map((_, nth) => (some[nth] ?? 0) + (others[nth] ?? 0));
}

/**
 * Estimates a quantile as Prometheus does: assumes that values are evenly spread within their bucket. So the error is at
 * most the bucket's width. Beyond the last bound the result is that bound.
 * @param share such as 0.95
 * @returns seconds, or null if nothing was counted
 */
export function quantile(latencies: Latencies, share: number): number | null {
  const total = latencies.reduce((sum, count) => sum + count, 0);
  const wanted = total * share;
  let below = 0;
  for (const [nth, count] of latencies.entries()) {
    if (count > 0 && below + count >= wanted) {
      const from = LATENCY_BOUNDS[nth - 1] ?? 0;
      const to = LATENCY_BOUNDS[nth] ?? from;
      const milliseconds = from + ((wanted - below) / count) * (to - from);
      return Number((milliseconds / 1_000).toPrecision(3));
    }
    below += count;
  }
  return null;
}

/** A counter of one kind in one minute. */
export type Traffic = {
  /** Minutes since the epoch, by Postgres's clock; UNKNOWN_MINUTE means the minute of writing. */
  minute: number;
  what: 'webhook' | 'placement' | 'live';
  outcome: string;
  /** ALL_LOCATIONS if the location is not known. */
  locationId: string;
  /** Undefined if it is to be looked up by location when the counter is written. Then `claimed` is true. */
  integration: string | undefined;
  /** True if the location comes from a URL or the platform, so that it may not exist. */
  claimed: boolean;
  count: number;
  /** Latencies, for outcomes that have a duration. */
  latencies: Latencies | undefined;
};

/** Stands for all locations of an integration, including unknown ones. */
export const ALL_LOCATIONS = '';
/** Stands for an integration that does not exist or is not known yet. */
const UNKNOWN_INTEGRATION = 'unknown';
const UNKNOWN_MINUTE = 0;
/** Seconds for which traffic is stored: a little more than a day, because the first step of a chart is read whole. */
export const TRAFFIC_KEPT_S = 25 * 3_600;

/** @returns the first counter with the counts of both */
function joinTraffic<Some extends Traffic>(some: Some, others: Traffic): Some {
  const latencies = addLatencies(some.latencies, others.latencies);
  return { ...some, count: some.count + others.count, latencies };
}

/**
 * Adds the counters of one process to the table, each to its location and to ALL_LOCATIONS, so that a chart of all
 * locations reads as few rows as a chart of one.
 * @param now the present minute, as in `Traffic`
 */
async function writeTraffic(pool: Pool, counted: readonly Traffic[], now: number): Promise<void> {
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

async function integrationsOf(pool: Pool, locationIds: ReadonlySet<string>): Promise<Map<string, string>> {
  const { rows } = await pool.query<{ locationId: string; integration: string }>({
    name: 'integrations-of',
    text: `SELECT location_id AS "locationId", integration FROM locations WHERE location_id = ANY ($1::text[])`,
    values: [[...locationIds]],
  });
  return new Map(rows.map(({ locationId, integration }) => [locationId, integration]));
}

/** Writes rows ordered by key, so that two processes cannot deadlock. */
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

/** The fields that distinguish counters within a minute. */
type Kind = Pick<Traffic, 'what' | 'outcome' | 'locationId' | 'integration' | 'claimed'>;

const MINUTE_MS = 60_000;
/** The most counters in memory while they cannot be written, some 10 MB. Beyond that, the oldest is removed. */
const COUNTERS_MAX = 20_000;
/** The most locations from URLs counted between two writes. Any others, perhaps invented, count without a location. */
const CLAIMED_MAX = 1_000;

/**
 * Counts traffic by minute, location, integration and outcome. It collects counts in memory and writes them
 * periodically, because a write per webhook would cost as much as the webhook. Every process adds its own counts. If a
 * process is killed, the counts of some seconds are lost. If the answer to a write is lost, counts may be added twice.
 * @param about.integrations the known integrations
 */
export function countTraffic(
  pool: Pool,
  about: { integrations: ReadonlySet<string>; now: Now },
): {
  observe: Observe;
  /** Writes the counters. If that fails, they stay in memory, up to the limit. */
  write(): Promise<void>;
} {
  let counters = new Map<string, Traffic>();
  let claimed = 0;

  const minuteNow = (): number => {
    try {
      return toMinute(about.now());
    } catch {
      return UNKNOWN_MINUTE;
    }
  };
  const store = (key: string, traffic: Traffic): Traffic => {
    const [oldest] = counters.size < COUNTERS_MAX ? [] : counters.keys();
    if (oldest !== undefined) counters.delete(oldest);
    counters.set(key, traffic);
    return traffic;
  };
  const count = (kind: Kind, milliseconds?: number): void => {
    const minute = minuteNow();
    const key = keyOf(minute, kind);
    const traffic = counters.get(key) ?? store(key, { ...kind, minute, count: 0, latencies: undefined });
    traffic.count += 1;
    if (milliseconds !== undefined) countLatency((traffic.latencies ??= noLatencies()), milliseconds);
  };
  const countRefused = ({ outcome, integration = '', locationId, claimedLocationId = '' }: WebhookRefused): void => {
    const kind: Kind = {
      what: 'webhook',
      outcome,
      locationId: locationId ?? ALL_LOCATIONS,
      integration: about.integrations.has(integration) ? integration : UNKNOWN_INTEGRATION,
      claimed: false,
    };
    const claim: Kind = { ...kind, locationId: claimedLocationId, claimed: true };
    if (locationId !== undefined || !Id.safeParse(claimedLocationId).success) count(kind);
    else if (counters.has(keyOf(minuteNow(), claim))) count(claim);
    else if (claimed < CLAIMED_MAX) {
      claimed += 1;
      count(claim);
    } else count(kind);
  };

  return {
    observe(observed) {
      if (observed.what === 'webhook') {
        const { what, outcome, locationId, integration } = observed;
        count({ what, outcome, locationId, integration, claimed: false });
      } else if (observed.what === 'webhook refused') countRefused(observed);
      else if (observed.what === 'placement' && observed.entered && observed.outcome !== 'waiting') {
        const { what, outcome, sinceSignalMs } = observed;
        const locationId = observed.locationId ?? ALL_LOCATIONS;
        const integration = observed.integration ?? UNKNOWN_INTEGRATION;
        const kind = { what, outcome, locationId, integration, claimed: observed.integration === null };
        count(kind, outcome === 'sent' ? sinceSignalMs : undefined);
      } else if (observed.what === 'live message' && observed.outcome === 'published') {
        const { outcome, locationId, appliedAt } = observed;
        const lagMs = Math.max(0, about.now().getTime() - Date.parse(appliedAt));
        const kind = { what: 'live', outcome } as const;
        count(
          locationId === null
            ? { ...kind, locationId: ALL_LOCATIONS, integration: UNKNOWN_INTEGRATION, claimed: false }
            : { ...kind, locationId, integration: undefined, claimed: true },
          lagMs,
        );
      }
    },
    async write() {
      if (counters.size === 0) return;
      const taken = counters;
      counters = new Map();
      try {
        await writeTraffic(pool, [...taken.values()], toMinute(about.now()));
        claimed = 0;
      } catch (error) {
        const since = counters;
        counters = taken;
        for (const [key, traffic] of since) {
          const before = counters.get(key);
          if (before === undefined) store(key, traffic);
          else counters.set(key, joinTraffic(before, traffic));
        }
        throw error;
      }
    },
  };
}

function toMinute(time: Date): number {
  return Math.floor(time.getTime() / MINUTE_MS);
}

/** Joins the fields with NUL, which no id contains. */
function keyOf(minute: number, { what, outcome, integration = '', locationId, claimed }: Kind): string {
  return `${minute} ${what} ${outcome} ${claimed ? '?' : ''}\0${integration}\0${locationId}`;
}
