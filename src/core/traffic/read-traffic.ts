import type { Pool } from 'pg';
import { z } from 'zod';
import { Instant } from '../domain/order.ts';
import { WEBHOOK_OUTCOMES } from '../domain/webhook.ts';
import { ALL_LOCATIONS, type Latencies, noLatencies, quantile, type Traffic } from './count-traffic.ts';

type TrafficHours = 1 | 6 | 24;

const Counts = z.array(z.int().min(0));
const Seconds = z.array(z.number().nullable());
const Quantiles = z.object({ p50: Seconds, p95: Seconds });

/** Traffic by step. Lists have one value per step, oldest first; the last step has not ended. */
export const ReadTraffic = z
  .object({
    from: Instant,
    to: Instant,
    stepSeconds: z.literal([60, 300, 900]),
    at: z.array(Instant).meta({ description: 'When each step began. Every other list has one value per step.' }),
    integrations: z.array(
      z.object({
        integration: z.string(),
        webhooks: z
          .partialRecord(z.enum([...WEBHOOK_OUTCOMES, 'unauthorized', 'not_committed']), Counts)
          .meta({ description: 'By outcome or refusal; only those that occurred.' }),
        placements: z.object({ sent: Counts, failed: Counts, held: Counts, in_doubt: Counts }).meta({
          description:
            'Placements that entered the state. A placement that an operator resolves as sent is not counted as sent.',
        }),
        placementSeconds: Quantiles.meta({ description: 'From the signal to the ticket. Null if none was sent.' }),
        liveLagSeconds: Quantiles.meta({ description: 'From the commit until the topic has the message.' }),
      }),
    ),
  })
  .meta({ id: 'Traffic' });
export type ReadTraffic = z.infer<typeof ReadTraffic>;
export type IntegrationTraffic = ReadTraffic['integrations'][number];

type Row = Pick<Traffic, 'what' | 'outcome' | 'count'> & {
  integration: string;
  step: number;
  latencies: Latencies | null;
};

const STEP_SECONDS = { 1: 60, 6: 300, 24: 900 } as const;

/**
 * Reads the traffic of the last hours by integration, for some locations or for all, accurate to ten seconds. One
 * statement reads at most the minutes of one day for each location, or for each integration if it reads all locations.
 */
export async function readTraffic(
  pool: Pool,
  about: { hours: TrafficHours; locations?: readonly string[] | undefined; integration?: string | undefined },
): Promise<ReadTraffic> {
  const stepSeconds = STEP_SECONDS[about.hours];
  const steps = (about.hours * 3_600) / stepSeconds;
  const { rows } = await pool.query<{ from: string; to: string; at: string[]; counted: Row[] }>({
    name: 'read-traffic',
    text: READ,
    values: [stepSeconds, steps, about.locations ?? [ALL_LOCATIONS], about.integration ?? null],
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
  const quantiles = (what: Row['what']): z.infer<typeof Quantiles> => {
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

/** Sums each bucket, because unnesting and grouping the arrays takes several times as long. */
const LATENCIES = noLatencies().map((_, nth) => `coalesce(sum(latencies[${nth + 1}]), 0)::int`);

const READ = `
  WITH span AS MATERIALIZED (
    SELECT now() AS until, date_bin(step, now(), 'epoch') - ($2::int - 1) * step AS since, step
    FROM make_interval(secs => $1::int) AS step
  ), counted AS (
    SELECT date_bin(step, minute, since) AS began, integration, what, outcome, sum(count)::int AS count,
           CASE WHEN count(latencies) > 0 THEN ARRAY[${LATENCIES.join()}] END AS latencies
    FROM span JOIN traffic ON minute >= since AND minute <= until
    WHERE location_id = ANY ($3::text[]) AND ($4::text IS NULL OR integration = $4)
    GROUP BY began, integration, what, outcome
  )
  SELECT to_json(since) #>> '{}' AS from, to_json(until) #>> '{}' AS to,
         (SELECT json_agg(since + nth * step ORDER BY nth) FROM generate_series(0, $2::int - 1) AS nth) AS at,
         (SELECT coalesce(json_agg(c), '[]')
          FROM (SELECT (extract(epoch FROM began - since) / $1::int)::int AS step, integration, what, outcome, count,
                       latencies
                FROM counted ORDER BY integration, what, outcome) AS c) AS counted
  FROM span`;
