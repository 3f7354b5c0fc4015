import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import type { Config } from '../config/config.ts';
import { ARE_OPEN, sweepCancellations } from '../core/cancellations/sweep-cancellations.ts';
import type { BackgroundWorkName } from '../core/domain/observed.ts';
import { endUnconfirmed } from '../core/locations/connect-grants.ts';
import { endPauses, PAUSES_END } from '../core/kitchens/pos-pauses.ts';
import { MAY_CHANGE } from '../core/kitchens/settle-kitchens.ts';
import { renewConnections } from '../core/locations/renew-connections.ts';
import { deleteOldCases } from '../core/orders/needs-operator.ts';
import { scoreHours } from '../core/orders/score-hours.ts';
import { endLeftTestOrders } from '../core/test-orders/test-order.ts';
import { databaseState } from '../core/postgres/watch-database.ts';
import { ensureWebhookPartitions } from '../core/postgres/ensure-webhook-partitions.ts';
import { runEvery } from '../core/postgres/loops.ts';
import { areDue, whenDue } from '../core/postgres/when-due.ts';
import { MAY_NEED_NOTICE } from '../core/notices/find-notices.ts';
import { MAY_SUSPECT, PROBES_DUE } from '../core/polling/probe-kitchens.ts';
import { eraseMembers } from '../core/retention/erase-members.ts';
import { archiveMonth } from '../core/retention/archive.ts';
import { archiveStore } from '../core/retention/archive-store.ts';
import { daysPast, movePastOrders } from '../core/retention/past-orders.ts';
import { deleteOld, type Deletion, dropOldPartitions, endOrders } from '../core/retention/retention-rules.ts';
import { ARE_PARKED, sweepParked } from '../core/statuses/redrive-parked.ts';
import { ESTIMATES_DUE, notifyEstimates } from '../core/statuses/notify-estimates.ts';
import { TRAFFIC_KEPT_S } from '../core/traffic/count-traffic.ts';
import type { Loop, Part } from './process-lifecycle.ts';
import type { Attention } from './modules/attention.ts';
import type { Kitchens } from './modules/kitchens.ts';
import type { Live } from './modules/live.ts';
import type { Notices } from './modules/notices.ts';
import type { Orders } from './modules/orders.ts';
import type { Webhooks } from './modules/webhooks.ts';

const SECOND = 1_000;
const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const SCORE = 10 * MINUTE;
/** A rare job's first round starts after this time, because some processes stop before they are an hour old. */
const SOON = 5_000;
/** A look at all open orders rests so many times as long as it took: in an outage of a vendor, it takes half a second. */
const LOOK = 100;

/** SQL that is true if a job may have something to do. Such a job begins within a second, and else each minute. */
export const DUE: Partial<Record<BackgroundWorkName, string>> = {
  'sweep of parked events': ARE_PARKED,
  'notification of estimates': ESTIMATES_DUE,
  'sweep of cancellations': ARE_OPEN,
  'finding of notices': MAY_NEED_NOTICE,
  'end of pauses': PAUSES_END,
  'availability of kitchens': MAY_CHANGE,
  'suspicion of kitchens': MAY_SUSPECT,
  'probing of kitchens': PROBES_DUE,
};

type App = Pick<FastifyInstance, 'log' | 'database' | 'observability' | 'providers'>;
export type Modules = {
  live: Live;
  webhooks: Webhooks;
  orders: Orders;
  kitchens: Kitchens;
  notices: Notices;
  attention: Attention;
};
/**
 * A job. Times are in milliseconds. The first round starts after `first`, or after `every` if `first` is unset. A job
 * that is in `DUE` begins its next round only when it is due.
 */
type Job = {
  name: BackgroundWorkName;
  every: number;
  first?: number;
  times?: number;
  isShared?: boolean;
  work: () => Promise<unknown>;
};

/** Makes the part that runs all jobs. Every process runs them. */
export function jobs(app: App, config: Config, modules: Modules): Part {
  const { observe } = app.observability;
  const stopping = new AbortController();
  const { signal } = stopping;
  const running: Promise<void>[] = [];
  const { pool } = app.database;
  const jobsDue = Object.values(DUE);
  const loopOf = ({ name, every, first = every, work, ...how }: Job): [string, Loop] => {
    const due = DUE[name];
    const wait = due === undefined ? {} : { due: () => whenDue(pool, due) };
    return [
      name,
      {
        start: () =>
          void running.push(runEvery(every, work, { observe, name, firstMs: first, ...how, ...wait, signal })),
        async round() {
          if (due === undefined || (await areDue(pool, jobsDue))[jobsDue.indexOf(due)]) await work();
        },
      },
    ];
  };
  return {
    name: 'jobs',
    loops: Object.fromEntries(tableOf(app, config, modules, signal).map(loopOf)),
    async stop() {
      stopping.abort();
      await modules.orders.poller.stop();
      await Promise.all(running);
    },
  };
}

function tableOf(app: App, config: Config, modules: Modules, stopping: AbortSignal): Job[] {
  const { database, observability, log } = app;
  const { pool } = database;
  const { live, webhooks, orders, kitchens, notices, attention } = modules;
  const { list } = webhooks.spill ?? {};
  const hourly = (name: BackgroundWorkName, work: Job['work']): Job => ({ name, every: HOUR, first: SOON, work });
  return [
    {
      name: 'sweep of parked events',
      every: SECOND,
      work: async () => webhooks.redrive(await sweepParked(pool)),
    },
    { name: 'notification of estimates', every: 0, work: () => wakeForEstimates(app, orders) },
    { name: 'sweep of cancellations', every: 0, work: () => endCancellations(app) },
    { name: 'finding of notices', every: SECOND, times: LOOK, work: notices.find },
    { name: 'end of pauses', every: SECOND, work: () => resumeLocations(app, orders) },
    { name: 'availability of kitchens', every: 0, work: kitchens.settle },
    { name: 'suspicion of kitchens', every: SECOND, times: LOOK, work: kitchens.suspect },
    { name: 'probing of kitchens', every: SECOND, work: () => kitchens.probe(stopping) },
    // Each round reads all unfinished orders. A location is polled at most once a minute.
    { name: 'status polling', every: 10 * SECOND, first: SOON, isShared: true, work: () => orders.poller.poll() },
    ...(attention ? [{ name: 'recording of attention' as const, every: 5 * SECOND, work: attention.record }] : []),
    { name: 'end of orders', every: MINUTE, work: () => endAllOrders(app) },

    { name: 'check of Postgres', every: 2 * SECOND, work: () => checkPostgres(app) },
    { name: 'reading of the clock', every: 10 * SECOND, work: () => database.clock.follow() },
    { name: 'creation of partitions', every: HOUR, work: () => ensureWebhookPartitions(pool) },
    { name: 'renewal of connections', every: DAY, first: MINUTE, work: () => renewGrants(app, stopping) },
    { name: 'end of unconfirmed grants', every: MINUTE, work: () => endGrants(app, config) },
    { name: 'scoring of vendors', every: SCORE, first: SOON, work: () => scoreHours(pool, (0.9 * SCORE) / SECOND) },
    // The list is read often, so that it lacks tokens that were revoked just before this process alone lost Postgres.
    ...(list ? [{ name: 'reading of webhook tokens' as const, every: 3 * SECOND, work: () => list.refresh() }] : []),

    ...observability.tasks.map(({ name, work, everyMs }) => recording(name, work, everyMs)),
    recording('recording of webhooks not stored', webhooks.writeNotStored),
    { name: 'recording of followed orders', every: 5 * SECOND, work: live.write },

    hourly('dropping of partitions', () => dropOldPartitions(pool, 'webhooks', config.WEBHOOK_RETENTION_DAYS)),
    ...retentionMsOf(config).map(([name, ms]) => hourly(name, () => deleteOld(pool, name, ms / SECOND))),
    hourly('erasure of member data', () => eraseMembers(pool, config.PII_RETENTION_DAYS, log)),
    hourly('move of past orders', () => movePastOrders(pool, config.PII_RETENTION_DAYS, { log, stopping })),
    hourly('dropping of past orders', () => dropPastOrders(pool, config, stopping)),
  ];
}

/** A month is archived before it is dropped. */
function dropPastOrders(pool: Pool, config: Config, stopping: AbortSignal): Promise<string[]> {
  const store = config.ARCHIVE_URL === undefined ? undefined : archiveStore(config.ARCHIVE_URL);
  const archive = (name: string) => !store || archiveMonth(pool, store, monthIn(name), { stopping });
  return dropOldPartitions(pool, 'past_orders', daysPast(config), { archive });
}

/** The month in a partition's name: 2027-01 in past_orders_202701. */
const monthIn = (name: string): string => `${name.slice(-6, -2)}-${name.slice(-2)}`;

const retentionMsOf = (config: Config): [Deletion, number][] => [
  // An unmatched webhook may match an order for an hour. It is stored for two days so that people can read it.
  ['deletion of unmatched webhooks', 2 * DAY],
  ['deletion of refused webhooks', config.REFUSED_KEEP * HOUR],
  ['deletion of old traffic', TRAFFIC_KEPT_S * SECOND],
  ['deletion of old sessions', 30 * DAY],
  ['deletion of old connect links', 30 * DAY],
  ['deletion of old notices', 30 * DAY],
  // No known refresh token stays valid for longer than this without use. See `renewConnections`.
  ['deletion of old grants', 90 * DAY],
  ['deletion of old audit', config.AUDIT_RETENTION_DAYS * DAY],
];

const recording = (name: BackgroundWorkName, work: () => Promise<void>, every?: number): Job => ({
  name,
  every: every ?? 10 * SECOND,
  first: every ?? SECOND,
  work,
});

async function wakeForEstimates({ database }: App, orders: Orders): Promise<void> {
  if ((await notifyEstimates(database.pool)) > 0) orders.wake();
}

async function endCancellations({ database, observability }: App): Promise<void> {
  for (const swept of await sweepCancellations(database.pool)) {
    observability.observe({ what: 'cancellation', ...swept });
  }
}

async function resumeLocations({ database, observability }: App, orders: Orders): Promise<void> {
  const resumed = await endPauses(database.pool);
  for (const { locationId, by } of resumed) {
    observability.observe({ what: 'pause', action: 'resume', by, locationId });
  }
  if (resumed.length > 0) orders.wake();
}

async function endAllOrders({ database }: App): Promise<void> {
  await endLeftTestOrders(database.pool);
  await endOrders(database.pool);
  await deleteOldCases(database.pool);
}

async function checkPostgres({ database }: App): Promise<void> {
  const { pool, flushPool, watch } = database;
  // The batch writers' idle connections are checked too, except the one that `watch.check` uses. So no webhook gets a
  // broken connection, and in a quiet hour none waits for a new connection and for planning the statement.
  // guard: kept-connections
  const flushing = Array.from({ length: flushPool.idleCount - 1 }, () => databaseState(flushPool));
  await Promise.all([watch.check(), databaseState(pool)]);
  await Promise.all(flushing);
}

async function renewGrants({ database, providers, log }: App, stopping: AbortSignal): Promise<void> {
  const { pool, clock } = database;
  await renewConnections({ ...providers, pool, now: clock.now, log, signal: stopping });
}

async function endGrants({ database, providers, log }: App, config: Config): Promise<void> {
  const { registry } = providers;
  const rules = { registry, keys: config.SETTINGS_KEY, publicUrl: config.PUBLIC_URL };
  await endUnconfirmed({ ...providers, pool: database.pool, now: database.clock.now, rules, log });
}
