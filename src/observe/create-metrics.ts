import { collectDefaultMetrics, Registry } from 'prom-client';
import type { Backlog } from '../core/orders/sample-backlog.ts';
import { type GaugeBy, UNKNOWN } from './event.ts';
import { KITCHEN_STATES } from '../core/domain/availability.ts';
import { type Observe, type ConnectionCounts, WHOSE } from '../core/domain/observed.ts';
import type { Now } from '../core/postgres/database-clock.ts';
import type { DatabaseState } from '../core/postgres/watch-database.ts';
import type { SpillState } from '../core/spill/spill-webhook.ts';
import { readerOf } from './events.ts';
import { counterIn, metricsIn } from './metrics-in.ts';

/** The backlog. `vacuumHeldS`: for this many seconds a database session has kept Postgres from removing dead rows. */
type Sampled = Backlog & { vacuumHeldS: number };

type KeysOf<Value> = { [Key in keyof Sampled]: Sampled[Key] extends Value ? Key : never }[keyof Sampled];

/**
 * Makes the gauges of the last sample of Postgres. All processes sample the same values, so an alert uses the largest.
 * @param sampled returns the sample; undefined if there is none, and then the gauges have no series
 */
function backlogGauges(gauge: GaugeBy, integrations: readonly string[], sampled: () => Sampled | undefined): void {
  const one = (name: string, help: string, key: KeysOf<number>): void =>
    gauge(name, help, [], (set) => {
      const backlog = sampled();
      if (backlog !== undefined) set(backlog[key]);
    });
  const by = (name: string, help: string, label: string, read: (backlog: Sampled) => Record<string, number>): void =>
    gauge(name, help, [label], (set) => {
      const backlog = sampled();
      if (backlog !== undefined) for (const [of, value] of Object.entries(read(backlog))) set(value, { [label]: of });
    });
  const known = (seconds: Record<string, number>): Record<string, number> =>
    Object.fromEntries(Object.entries(seconds).filter(([integration]) => integrations.includes(integration)));

  const open = 'Orders that are not at their POS yet';
  by('expediter_placements_open', `${open}.`, 'state', ({ waiting, held, paused, inDoubt }) => ({
    waiting,
    held,
    paused,
    in_doubt: inDoubt,
  }));
  const ofGroups = `${open}, by group of locations. An order counts in each group of its location.`;
  gauge('expediter_group_placements_open', ofGroups, ['group', 'state'], (set) => {
    for (const { group, state, count } of sampled()?.groups ?? []) set(count, { group, state });
  });
  by('expediter_kitchens', 'Locations by the availability of their kitchen.', 'state', ({ kitchens }) =>
    Object.fromEntries(KITCHEN_STATES.map((state) => [state, kitchens[state] ?? 0])),
  );
  const silent = 'Seconds since the last accepted webhook of any location of the integration.';
  by('expediter_integration_silent_seconds', silent, 'integration', (backlog) => known(backlog.silent));
  const lasts =
    'Seconds until the first connection of a location ends, unless it is renewed. Negative: a location has none.';
  by('expediter_connection_left_seconds', lasts, 'integration', (backlog) => known(backlog.lasts));
  const doubted = 'Orders in doubt that wait for an operator to check the POS.';
  one('expediter_placements_for_operator', doubted, 'forOperator');
  one('expediter_cancellations_by_phone', 'Orders that an operator must cancel by telephone.', 'byPhone');
  one('expediter_reconnect_needed', 'Orders held until an operator renews a connection.', 'reconnectNeeded');
  const done = 'Operator actions in the last hour. member_data: reads by the operator who read most.';
  by('expediter_operator_actions', done, 'action', ({ actions: { memberData, admin, operatorToken } }) => ({
    member_data: memberData,
    admin,
    operator_token: operatorToken,
  }));
  one('expediter_placement_oldest_open_seconds', 'Age of the oldest waiting signal.', 'oldestWaiting');
  one('expediter_orders_unreceived', 'Orders sent 5 to 60 minutes ago that the POS has not reported on.', 'unreceived');
  one('expediter_outbox_oldest_seconds', 'Age of the oldest unpublished message.', 'oldestUnpublished');
  one('expediter_status_webhook_failing_seconds', 'Time since STATUS_WEBHOOK_URL began to fail.', 'webhookFailing');
  one('expediter_status_webhook_stopped', '1 if STATUS_WEBHOOK_URL is stopped until it is resumed.', 'webhookStopped');
  one('expediter_parked_events', 'Events that wait until their POS id belongs to an order.', 'parked');
  const held = 'Time for which a session has kept Postgres from removing dead rows.';
  one('expediter_vacuum_held_seconds', held, 'vacuumHeldS');
}

export type Exposition = { contentType: string; body: string };

export type Metrics = {
  observe: Observe;
  /** Sets the latest sample of Postgres; undefined if Postgres cannot be queried. The gauges then have no series. */
  sampled(backlog: Sampled | undefined): void;
  /** Returns the text for Prometheus. It sends no query to Postgres, because the backlog comes from the last sample. */
  render(): Promise<Exposition>;
};

type Connections = { readonly totalCount: number; readonly idleCount: number; readonly waitingCount: number };

/** The event loop's lag is measured at this interval and includes it. Node's default, 10 ms, wakes an idle process. */
const LAG_EVERY_MS = 50;

/** The sources of the metrics that do not come from events. Each function is called at every scrape. */
export type Measured = {
  integrations: Iterable<string>;
  version: string;
  now: Now;
  pools: Record<'main' | 'flush', Connections>;
  readiness: () => { ready: boolean; database: DatabaseState };
  /** Undefined if there is no spill. */
  spill: (() => SpillState) | undefined;
  breakers: () => ReadonlyMap<string, 'open' | 'closed'>;
  connections: () => ConnectionCounts;
  droppedLines: () => number;
};

/**
 * Makes the service's metrics. Labels have few values, which are all known at the start, so each series begins with 0.
 * No label contains a location or text from a sender. Groups of locations are named by operators.
 */
export function createMetrics(about: Measured, registry = new Registry()): Metrics {
  const { now, spill } = about;
  const integrations = [...about.integrations];
  const make = {
    ...metricsIn(registry),
    integrations: [...integrations, UNKNOWN],
    hasSpill: spill !== undefined,
    now,
  };
  const observe = readerOf((reading) => reading.metrics?.(make));
  const answers = (): boolean => ['up', 'read_only'].includes(about.readiness().database);
  processGauges(registry, make.gauge, { ...about, integrations }, answers);
  if (spill !== undefined) spillGauges(make.gauge, spill, now);
  let backlog: Sampled | undefined;
  // While Postgres does not answer, the sample is too old to be shown.
  backlogGauges(make.gauge, integrations, () => (answers() ? backlog : undefined));
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_EVERY_MS });
  return {
    observe,
    sampled(sampled) {
      backlog = sampled;
    },
    render: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}

const gaugeOf =
  (gauge: GaugeBy) =>
  (name: string, help: string, read: () => number): void =>
    gauge(name, help, [], (set) => set(read()));

function processGauges(registry: Registry, gauge: GaugeBy, about: Measured, answers: () => boolean): void {
  const one = gaugeOf(gauge);
  gauge('expediter_pool_connections', 'Connections to Postgres.', ['pool', 'state'], (set) => {
    for (const [pool, { totalCount, idleCount, waitingCount }] of Object.entries(about.pools)) {
      set(totalCount, { pool, state: 'total' });
      set(idleCount, { pool, state: 'idle' });
      set(waitingCount, { pool, state: 'waiting' });
    }
  });
  gauge('expediter_breaker_open', '1 while a vendor does not answer and is only probed.', ['integration'], (set) => {
    const states = about.breakers();
    for (const integration of about.integrations) set(states.get(integration) === 'open' ? 1 : 0, { integration });
  });
  one('expediter_ready', '1 while this process accepts requests.', () => Number(about.readiness().ready));
  one('expediter_database_up', '1 while Postgres answers this process.', () => Number(answers()));
  one('expediter_database_read_only', '1 while Postgres answers this process but takes no writes.', () =>
    Number(about.readiness().database === 'read_only'),
  );
  gauge('expediter_info', 'The version of the service.', ['version'], (set) => set(1, { version: about.version }));
  const dropped = 'Log lines dropped because their reader was too slow.';
  counterIn(registry, 'expediter_log_lines_dropped_total', dropped, [], (inc) => inc({}, about.droppedLines()));
  const accepted = 'Accepted connections, by whether a request has authenticated.';
  gauge('expediter_http_connections', accepted, ['of'], (set) => {
    const { open } = about.connections();
    for (const of of WHOSE) set(open[of], { of });
  });
  one('expediter_http_connections_limit', 'Maximum number of open connections.', () => about.connections().most);
  const closed = 'Connections that were closed to free capacity for others.';
  counterIn(registry, 'expediter_http_connections_closed_total', closed, ['of'], (inc) => {
    const counts = about.connections().closed;
    for (const of of WHOSE) inc({ of }, counts[of]);
  });
}

function spillGauges(gauge: GaugeBy, state: () => SpillState, now: Now): void {
  const one = gaugeOf(gauge);
  one('expediter_spill_waiting', 'Webhooks in the spill, as far as this process knows.', () => state().waiting);
  one('expediter_spill_oldest_seconds', 'Age of the oldest webhook in the spill.', () => {
    const { oldestAt } = state();
    return oldestAt === null ? 0 : (now().getTime() - oldestAt.getTime()) / 1_000;
  });
}
