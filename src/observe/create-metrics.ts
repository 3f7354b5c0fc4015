import { Counter, Registry, collectDefaultMetrics } from 'prom-client';
import type { Now } from '../core/postgres/database-clock.ts';
import type { DatabaseState } from '../core/postgres/database-state.ts';
import {
  ASK_OUTCOMES,
  BACKGROUND_WORK,
  CANCELLATION_OUTCOMES,
  GUESS_DOORS,
  GUESS_OUTCOMES,
  LOOK_OUTCOMES,
  type Observe,
} from '../core/domain/observed.ts';
import type { SpillState } from '../core/spill/spill-state.ts';
import { WEBHOOK_OUTCOMES } from '../core/domain/webhook.ts';
import { DROP_CODES } from '../core/domain/webhook-cause.ts';
import { LEFT_OUT_CODES } from '../core/domain/left-out.ts';
import { PLACEMENT_CODES } from '../core/domain/placement-cause.ts';
import { WHOSE, type ConnectionCounts } from '../http/bound-connections.ts';
import { backlogGauges, type Sampled } from './backlog-gauges.ts';
import { countBy, type Count } from './count-by.ts';
import { followMetrics } from './follow-metrics.ts';
import { gaugeBy } from './gauge-by.ts';
import { measureBy, type Measure } from './measure-by.ts';
import { UNKNOWN, type Labels } from './series-of.ts';
import { spillMetrics } from './spill-metrics.ts';

export type Exposition = { contentType: string; body: string };

export type Metrics = {
  observe: Observe;
  /** Stores the latest sample of Postgres. Undefined means that Postgres cannot be asked, and its gauges disappear. */
  sampled(backlog: Sampled | undefined): void;
  /** The text for Prometheus. It sends no query: the backlog is from the last sample. */
  render(): Promise<Exposition>;
};

type Connections = { readonly totalCount: number; readonly idleCount: number; readonly waitingCount: number };

const REFUSED = ['unauthorized', 'not_committed'];
const SIGNAL_OUTCOMES = ['recorded', 'known', 'poison', 'unauthorized', 'not_recorded'];
const CALLS = ['createOrder', 'findOrder', 'cancelOrder'];
const ATTEMPT_OUTCOMES = [
  'placed',
  'absent',
  'cancelled',
  'requested',
  'not_asked',
  'TryAgain',
  'NeedsOperator',
  'GiveUp',
  UNKNOWN,
];
const PLACEMENT_OUTCOMES = ['sent', 'failed', 'withdrawn', 'held', 'in_doubt'];
const REFETCH_OUTCOMES = ['fetched', 'missing', 'unreadable', 'TryAgain', 'NeedsOperator', 'GiveUp'];

/** Upper bounds of the buckets, in seconds: first for work of milliseconds, then for what may take until a time-out. */
const QUICK = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5];
const CALL = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 8, 10, 15, 30, 60, 120];
const PLACEMENT = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 1_800, 3_600];
const LAG = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600];
/** By itself it looks every 10 ms: most of what a process that rests was woken for. Each lag is so much more than none. */
const LAG_EVERY_MS = 50;
const BATCH = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/**
 * Makes the service's metrics. Labels have few values, all known from the start, so that each series exists with 0
 * before anything happens. No label is a location, or text from a sender.
 */
export function createMetrics(about: {
  integrations: Iterable<string>;
  version: string;
  now: Now;
  pools: Record<'main' | 'flush', Connections>;
  readiness: () => { ready: boolean; database: DatabaseState };
  spill: (() => SpillState) | undefined;
  breakers: () => ReadonlyMap<string, 'open' | 'closed'>;
  connections: () => ConnectionCounts;
  droppedLines: () => number;
}): Metrics {
  const registry = new Registry();
  const integrations = [...about.integrations];
  const labelled = [...integrations, UNKNOWN];

  const counter = (name: string, help: string, labels: Labels): Count =>
    countBy(registry, `expediter_${name}`, help, labels);
  const histogram = (name: string, help: string, buckets: number[], labels: Labels): Measure =>
    measureBy(registry, { name: `expediter_${name}`, help, buckets, labels });
  const gauge = gaugeBy(registry);

  const webhooks = counter('webhooks_total', 'Webhooks by what became of them.', {
    integration: labelled,
    outcome: [...WEBHOOK_OUTCOMES, ...REFUSED],
  });
  const dropped = counter('webhooks_dropped_total', 'Webhooks that were dropped, by why; old_token was refused.', {
    integration: labelled,
    cause: DROP_CODES,
  });
  const notKept = counter('webhooks_not_kept_total', 'Those of them that were only counted.', {
    integration: labelled,
  });
  const spill = about.spill && spillMetrics(counter, gauge, { now: about.now, state: about.spill });
  const follow = followMetrics(counter, gauge, histogram);
  const conflicts = counter('conflicts_total', 'What a POS said that contradicts what we know.', {
    integration: labelled,
  });
  const signals = counter('signals_total', 'Push requests by what became of them.', { outcome: SIGNAL_OUTCOMES });
  const attempts = counter('placement_attempts_total', 'Calls to a POS about an order.', {
    integration: labelled,
    call: CALLS,
    outcome: ATTEMPT_OUTCOMES,
  });
  const placements = counter('placements_total', 'Placements that came into a state.', {
    integration: labelled,
    outcome: PLACEMENT_OUTCOMES,
  });
  const causes = counter('placement_causes_total', 'Placements that came into a state, by why.', {
    outcome: PLACEMENT_OUTCOMES.filter((outcome) => outcome !== 'sent' && outcome !== 'withdrawn'),
    cause: PLACEMENT_CODES,
  });
  const cancellations = counter('cancellations_total', 'Orders to be cancelled at a POS, by what became of that.', {
    integration: labelled,
    outcome: CANCELLATION_OUTCOMES,
  });
  const looks = counter('looks_total', 'Known orders that were signalled and fetched again, by what they said.', {
    outcome: LOOK_OUTCOMES,
  });
  const liveMessages = counter('live_messages_total', 'Publishes to the status topic.', {
    outcome: ['published', 'failed'],
  });
  const refetches = counter('refetches_total', 'Orders asked for at the ordering platform.', {
    outcome: REFETCH_OUTCOMES,
  });
  const leftOut = counter('order_fields_left_out_total', 'What orders were read without, by why.', {
    code: LEFT_OUT_CODES,
  });
  const asks = counter('asks_total', 'Questions to a POS about an order that was quieter than it should be.', {
    integration: labelled,
    outcome: ASK_OUTCOMES,
  });
  const guesses = counter('guesses_total', 'Credentials that opened nothing; slowed were not looked at.', {
    door: GUESS_DOORS,
    outcome: GUESS_OUTCOMES,
  });
  const work = counter('background_work_total', 'Rounds of what is done without being asked.', {
    work: BACKGROUND_WORK,
    outcome: ['done', 'failed'],
  });

  const ofIntegration = { integration: labelled };
  const webhookSeconds = histogram('webhook_duration_seconds', 'From the head to the commit.', QUICK, ofIntegration);
  const callSeconds = histogram('placement_call_duration_seconds', 'One call to a POS.', CALL, {
    ...ofIntegration,
    call: CALLS,
  });
  const placementSeconds = histogram(
    'placement_duration_seconds',
    'From the signal to the ticket.',
    PLACEMENT,
    ofIntegration,
  );
  const liveLag = histogram('live_lag_seconds', 'From the commit until the topic has the message.', LAG, {});
  const batchSize = histogram('flush_batch_size', 'Webhooks in one commit.', BATCH, {});
  const flushSeconds = histogram('flush_duration_seconds', 'One commit of webhooks.', QUICK, {});

  gauge('expediter_pool_connections', 'Connections to Postgres.', ['pool', 'state'], (set) => {
    for (const [pool, { totalCount, idleCount, waitingCount }] of Object.entries(about.pools)) {
      set(totalCount, { pool, state: 'total' });
      set(idleCount, { pool, state: 'idle' });
      set(waitingCount, { pool, state: 'waiting' });
    }
  });
  gauge('expediter_breaker_open', '1 while a vendor does not answer and is only probed.', ['integration'], (set) => {
    const states = about.breakers();
    for (const integration of integrations) set(states.get(integration) === 'open' ? 1 : 0, { integration });
  });
  gauge('expediter_ready', '1 while this process takes requests.', [], (set) => set(about.readiness().ready ? 1 : 0));
  const isReadOnly = (): boolean => about.readiness().database === 'read_only';
  const answers = (): boolean => about.readiness().database === 'up' || isReadOnly();
  gauge('expediter_database_up', '1 while Postgres answers this process.', [], (set) => set(answers() ? 1 : 0));
  gauge('expediter_database_read_only', '1 while Postgres answers this process and takes no writes.', [], (set) =>
    set(isReadOnly() ? 1 : 0),
  );
  gauge('expediter_info', 'Which version this is.', ['version'], (set) => set(1, { version: about.version }));
  const lines = new Counter({
    name: 'expediter_log_lines_dropped_total',
    help: 'Log lines that nobody read in time.',
    registers: [registry],
    collect() {
      lines.reset();
      lines.inc(about.droppedLines());
    },
  });
  gauge(
    'expediter_http_connections',
    'Accepted connections, by whether a request has authenticated.',
    ['of'],
    (set) => {
      const { open } = about.connections();
      for (const of of WHOSE) set(open[of], { of });
    },
  );
  gauge('expediter_http_connections_limit', 'The most of them at once.', [], (set) => set(about.connections().most));
  const closed = new Counter({
    name: 'expediter_http_connections_closed_total',
    help: 'Connections that were closed to make room for others.',
    labelNames: ['of'],
    registers: [registry],
    collect() {
      closed.reset();
      const counts = about.connections().closed;
      for (const of of WHOSE) closed.inc({ of }, counts[of]);
    },
  });
  let backlog: Sampled | undefined;
  // An old sample is not shown while Postgres does not answer.
  backlogGauges(gauge, integrations, () => (answers() ? backlog : undefined));
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_EVERY_MS });

  return {
    observe(observed) {
      switch (observed.what) {
        case 'webhook':
          webhooks(observed.integration, observed.outcome);
          if (observed.dropped !== undefined) dropped(observed.integration, observed.dropped.cause.code);
          if (observed.webhookId === null) notKept(observed.integration);
          if (observed.fromSpill === true) spill?.drained(observed.outcome);
          else webhookSeconds(observed.milliseconds / 1_000, observed.integration);
          break;
        case 'webhook refused':
          webhooks(observed.integration, observed.outcome);
          break;
        case 'old token':
          dropped(observed.integration, 'old_token');
          if (observed.webhookId === null) notKept(observed.integration);
          break;
        case 'spill':
          spill?.spilled(observed.outcome);
          break;
        case 'drain':
          spill?.drained(observed.outcome);
          break;
        case 'signal':
          signals(observed.outcome);
          break;
        case 'refetch':
          refetches(observed.outcome);
          break;
        case 'left out':
          for (const { code } of observed.leftOut) leftOut(code);
          break;
        case 'attempt':
          attempts(observed.integration, observed.call, observed.outcome);
          callSeconds(observed.milliseconds / 1_000, observed.integration, observed.call);
          break;
        case 'placement':
          if (observed.entered) {
            placements(observed.integration ?? UNKNOWN, observed.outcome);
            causes(observed.outcome, observed.cause?.code);
          }
          if (observed.outcome === 'sent') {
            placementSeconds(observed.sinceSignalMs / 1_000, observed.integration ?? UNKNOWN);
          }
          break;
        case 'cancellation':
          cancellations(observed.integration ?? UNKNOWN, observed.outcome);
          break;
        case 'look':
          looks(observed.outcome);
          break;
        case 'flush':
          batchSize(observed.webhooks);
          flushSeconds(observed.milliseconds / 1_000);
          break;
        case 'live message':
          liveMessages(observed.outcome);
          if (observed.outcome === 'published') {
            liveLag(Math.max(0, about.now().getTime() - Date.parse(observed.appliedAt)) / 1_000);
          }
          break;
        case 'ask':
          asks(observed.integration, observed.outcome);
          break;
        case 'conflict':
          conflicts(observed.integration);
          break;
        case 'follow':
          follow(observed);
          break;
        case 'guess':
          guesses(observed.door, observed.outcome);
          break;
        case 'background work':
          work(observed.work, observed.outcome);
          break;
        case 'claim':
        case 'redrive':
        case 'POS pause':
          break;
      }
    },
    sampled(sampled) {
      backlog = sampled;
    },
    render: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}
