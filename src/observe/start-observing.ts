import type { Pool } from 'pg';
import { recordAction } from '../core/operators/audit.ts';
import type { Actor } from '../core/operators/operator.ts';
import type { Log } from '../core/domain/log.ts';
import type { BackgroundWorkName, AuthEndpoint, Observe } from '../core/domain/observed.ts';
import type { TracedConfig, Traces } from './create-traces.ts';
import { vacuumHolder } from '../core/postgres/vacuum-holder.ts';
import { recordLastSeen } from '../core/locations/record-last-seen.ts';
import { countTraffic } from '../core/traffic/count-traffic.ts';
import { sampleBacklog } from '../core/orders/sample-backlog.ts';
import { version } from '../core/domain/version.ts';
import type { Exposition, Measured, Metrics } from './create-metrics.ts';
import { logJourneys } from './events.ts';

/** At most this many sources are counted, and `MOST_REPORTED` are reported singly. The rest is reported as `others`. */
const MOST_COUNTED = 1_000;
const MOST_REPORTED = 20;
const OTHERS = 'others';
const NOBODY: Actor = { kind: 'nobody', id: 'nobody', name: 'nobody' };
/** Endpoints that are not for operators. Their failed authentications are not in the operators' audit. */
const OUTSIDE: readonly AuthEndpoint[] = ['availability', 'webhook', 'push', 'follow'];

type Count = { refused: number; slowed: number };
type Line = Count & { source: string; endpoint?: AuthEndpoint };

/**
 * Counts failed authentications by source and endpoint, and reports the counts. The log gets a line for each of the
 * busiest sources and one line for the others. The audit gets only the lines of operators' endpoints. Counts are
 * reported instead of single events, so that a flood cannot fill the log and the audit.
 */
function reportFailures(pool: Pool, log: Log): { observe: Observe; report(): Promise<void> } {
  let counts = new Map<string, Map<AuthEndpoint, Count>>();
  return {
    observe(observed) {
      if (observed.what !== 'failed authentication') return;
      const { endpoint, outcome } = observed;
      const source = counts.has(observed.source) || counts.size < MOST_COUNTED ? observed.source : OTHERS;
      const endpoints = counts.get(source) ?? new Map<AuthEndpoint, Count>();
      const count = endpoints.get(endpoint) ?? { refused: 0, slowed: 0 };
      counts.set(source, endpoints.set(endpoint, count));
      count[outcome] += 1;
    },
    async report() {
      const taken = counts;
      counts = new Map();
      const lines = [...taken].flatMap(([source, endpoints]) =>
        [...endpoints].map(([endpoint, count]) => ({ source, endpoint, ...count })),
      );
      for (const line of busiest(lines)) log.warn(line, 'failed authentications');
      const ofOperators = [...taken].flatMap(([source, endpoints]) => {
        const counted = [...endpoints].flatMap(([endpoint, count]) => (OUTSIDE.includes(endpoint) ? [] : [count]));
        return counted.length === 0 ? [] : [{ source, ...sum(counted) }];
      });
      for (const { source, refused, slowed } of busiest(ofOperators)) {
        const after = `${refused} wrong, ${slowed} slowed`;
        await recordAction(pool, NOBODY, { action: 'sign in', source }, { outcome: 'refused', after });
      }
    },
  };
}

/** Returns the busiest lines, and one line for the others. */
function busiest(lines: readonly Line[]): Line[] {
  const sorted = lines.toSorted((a, b) => b.refused + b.slowed - a.refused - a.slowed);
  const rest = sorted.slice(MOST_REPORTED);
  const first = sorted.slice(0, MOST_REPORTED);
  return rest.length === 0 ? first : [...first, { source: OTHERS, ...sum(rest) }];
}

function sum(counts: readonly Count[]): Count {
  const of = (key: keyof Count): number => counts.reduce((total, count) => total + count[key], 0);
  return { refused: of('refused'), slowed: of('slowed') };
}

/** Failed authentications are reported at this interval. */
const REPORT_MS = 60_000;

export type Observing = {
  observe: Observe;
  /** Loads metrics and traces if configured. This takes a moment, so the process listens first. */
  load(sources: MetricSources): Promise<void>;
  /** Returns the text for Prometheus. Waits until the metrics are loaded. */
  metrics(): Promise<Exposition>;
  /** Tasks for the caller to run every `everyMs`, or every few seconds if it is undefined. */
  tasks: readonly { name: BackgroundWorkName; work: () => Promise<void>; everyMs?: number }[];
  /** Writes and sends the data that is still in memory. */
  close(): Promise<void>;
};

export type MetricSources = Omit<Measured, 'integrations' | 'version' | 'now' | 'pools'>;

/** Starts the readers of events: log, metrics and traffic (if operators have an endpoint), traces (if configured). */
export function startObserving(about: {
  config: TracedConfig &
    Parameters<typeof sampleBacklog>[1] & {
      OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined;
      OTEL_TRACES_SAMPLER_ARG: number;
    };
  /** Whether operators have an endpoint, where they can read metrics and traffic. */
  isRead: boolean;
  log: Log;
  integrations: Iterable<string>;
  pool: Pool;
  flushPool: Pool;
  now: Measured['now'];
}): Observing {
  const { config, isRead, log, pool, flushPool, now } = about;
  const readers = fanOut(log);
  const lastSeen = recordLastSeen(pool);
  const failures = reportFailures(pool, log);
  const integrations = new Set(about.integrations);
  const traffic = isRead ? countTraffic(pool, { integrations, now }) : undefined;
  const loaded = Promise.withResolvers<Metrics>();
  let metrics: Metrics | undefined;
  let traces: Traces | undefined;
  readers.add('log', logJourneys(log));
  readers.add('lastSeen', lastSeen.observe);
  readers.add('failures', failures.observe);
  if (traffic !== undefined) readers.add('traffic', traffic.observe);

  const loadMetrics = async (sources: MetricSources): Promise<void> => {
    const { createMetrics } = await import('./create-metrics.ts');
    metrics = createMetrics({ ...sources, now, integrations, version, pools: { main: pool, flush: flushPool } });
    readers.add('metrics', metrics.observe);
    loaded.resolve(metrics);
  };
  const loadTraces = async (endpoint: string): Promise<void> => {
    const { createTraces } = await import('./create-traces.ts');
    traces = createTraces({ endpoint, ratio: config.OTEL_TRACES_SAMPLER_ARG, config, version, now, log });
    readers.add('traces', traces.observe);
  };

  const sampleVacuum = vacuumHolder();
  const sample = async (): Promise<void> => {
    // The old sample is removed after a failure, because it would be shown as current.
    const sampled = await Promise.all([sampleBacklog(pool, config), sampleVacuum(pool)]).catch((error: unknown) => {
      metrics?.sampled(undefined);
      throw error;
    });
    metrics?.sampled({ ...sampled[0], vacuumHeldS: sampled[1] });
  };

  return {
    observe: readers.observe,
    async load(sources) {
      if (isRead) await loadMetrics(sources);
      if (config.OTEL_EXPORTER_OTLP_ENDPOINT !== undefined) await loadTraces(config.OTEL_EXPORTER_OTLP_ENDPOINT);
    },
    metrics: async () => (await loaded.promise).render(),
    tasks: [
      { name: 'recording of last-seen times', work: lastSeen.write },
      { name: 'report of failed authentications', work: failures.report, everyMs: REPORT_MS },
      ...(traffic === undefined ? [] : [{ name: 'recording of traffic' as const, work: traffic.write }]),
      ...(isRead ? [{ name: 'measurement of the backlog' as const, work: sample }] : []),
    ],
    async close() {
      const written = [
        lastSeen.write().catch((error: unknown) => log.warn({ err: error }, 'last-seen times are lost')),
        failures
          .report()
          .catch((error: unknown) => log.warn({ err: error }, 'failed authentications are not in the audit')),
        traffic?.write().catch((error: unknown) => log.warn({ err: error }, 'traffic of the last seconds is lost')),
      ];
      await Promise.all([...written, traces?.close()]);
    },
  };
}

type Readers = {
  observe: Observe;
  /** Adds a reader. It gets only later events. */
  add(name: string, read: Observe): void;
};

/** Passes every event to all readers. A reader that throws does not affect the others. Its first error is logged. */
export function fanOut(log: Pick<Log, 'error'>): Readers {
  const readers: { name: string; read: Observe; failed: boolean }[] = [];
  return {
    observe(observed) {
      for (const reader of readers) {
        try {
          reader.read(observed);
        } catch (error) {
          if (!reader.failed) log.error({ err: error, reader: reader.name }, 'a reader of events failed');
          reader.failed = true;
        }
      }
    },
    add(name, read) {
      readers.push({ name, read, failed: false });
    },
  };
}
