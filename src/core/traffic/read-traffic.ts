import type { Pool } from 'pg';
import type { WebhookOutcome } from '../domain/webhook.ts';
import { noLatencies, quantile, type Latencies } from './latency-buckets.ts';
import { ALL_LOCATIONS, type Traffic } from './write-traffic.ts';

export type TrafficHours = 1 | 6 | 24;

/** Lists have one value for each step, oldest first; the last step is under way. */
export type ReadTraffic = {
  /** RFC 3339, as Postgres writes it. */
  from: string;
  to: string;
  stepSeconds: 60 | 300 | 900;
  /** When each step began. */
  at: string[];
  integrations: IntegrationTraffic[];
};
export type IntegrationTraffic = {
  integration: string;
  /** Only outcomes that occurred. */
  webhooks: Partial<Record<WebhookOutcome | 'unauthorized' | 'not_committed', number[]>>;
  placements: Record<'sent' | 'failed' | 'held' | 'in_doubt', number[]>;
  /** Seconds, estimated as `quantile` does; null where none was. */
  placementSeconds: Quantiles;
  liveLagSeconds: Quantiles;
};
type Quantiles = { p50: (number | null)[]; p95: (number | null)[] };

type Row = Pick<Traffic, 'what' | 'outcome' | 'count'> & {
  integration: string;
  step: number;
  latencies: Latencies | null;
};

const STEP_SECONDS = { 1: 60, 6: 300, 24: 900 } as const;

/**
 * What went through in the last hours, to ten seconds, by integration: at one location, or at all of them.
 * One statement. It reads at most what one location, or all of an integration's together, have in a day of minutes,
 * however many locations there are.
 */
export async function readTraffic(
  pool: Pool,
  about: { hours: TrafficHours; locationId?: string | undefined; integration?: string | undefined },
): Promise<ReadTraffic> {
  const stepSeconds = STEP_SECONDS[about.hours];
  const steps = (about.hours * 3_600) / stepSeconds;
  const { rows } = await pool.query<{ from: string; to: string; at: string[]; counted: Row[] }>({
    name: 'read-traffic',
    text: READ,
    values: [stepSeconds, steps, about.locationId ?? ALL_LOCATIONS, about.integration ?? null],
  });
  const { from, to, at, counted } = rows[0] ?? { from: '', to: '', at: [], counted: [] };
  const integrations = Map.groupBy(counted, (row) => row.integration);
  return {
    from,
    to,
    stepSeconds,
    at,
    integrations: [...integrations].map(([integration, of]) => toIntegration(integration, of, steps)),
  };
}

function toIntegration(integration: string, rows: readonly Row[], steps: number): IntegrationTraffic {
  const counts = (what: Row['what'], outcome: string): number[] => {
    const found = Array.from({ length: steps }, () => 0);
    for (const row of rows) if (row.what === what && row.outcome === outcome) found[row.step] = row.count;
    return found;
  };
  const quantiles = (what: Row['what']): Quantiles => {
    const timed = new Map(
      rows.flatMap((row) => (row.what === what && row.latencies ? [[row.step, row.latencies]] : [])),
    );
    const of = (share: number): (number | null)[] =>
      Array.from({ length: steps }, (_, step) => quantile(timed.get(step) ?? [], share));
    return { p50: of(0.5), p95: of(0.95) };
  };
  const outcomes = new Set(rows.flatMap(({ what, outcome }) => (what === 'webhook' ? [outcome] : [])));
  return {
    integration,
    webhooks: Object.fromEntries([...outcomes].map((outcome) => [outcome, counts('webhook', outcome)])),
    placements: {
      sent: counts('placement', 'sent'),
      failed: counts('placement', 'failed'),
      held: counts('placement', 'held'),
      in_doubt: counts('placement', 'in_doubt'),
    },
    placementSeconds: quantiles('placement'),
    liveLagSeconds: quantiles('live'),
  };
}

/** Bucket by bucket: to take the arrays apart, and to group the parts, takes several times as long. */
const LATENCIES = noLatencies().map((_, nth) => `coalesce(sum(latencies[${nth + 1}]), 0)::int`);

const READ = `
  WITH span AS MATERIALIZED (
    SELECT now() AS until, date_bin(step, now(), 'epoch') - ($2::int - 1) * step AS since, step
    FROM make_interval(secs => $1::int) AS step
  ), counted AS (
    SELECT date_bin(step, minute, since) AS began, integration, what, outcome, sum(count)::int AS count,
           CASE WHEN count(latencies) > 0 THEN ARRAY[${LATENCIES.join()}] END AS latencies
    FROM span JOIN traffic ON minute >= since AND minute <= until
    WHERE location_id = $3::text AND ($4::text IS NULL OR integration = $4)
    GROUP BY began, integration, what, outcome
  )
  SELECT to_json(since) #>> '{}' AS from, to_json(until) #>> '{}' AS to,
         (SELECT json_agg(since + nth * step ORDER BY nth) FROM generate_series(0, $2::int - 1) AS nth) AS at,
         (SELECT coalesce(json_agg(c), '[]')
          FROM (SELECT (extract(epoch FROM began - since) / $1::int)::int AS step, integration, what, outcome, count,
                       latencies
                FROM counted ORDER BY integration, what, outcome) AS c) AS counted
  FROM span`;
