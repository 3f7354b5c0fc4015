import type { FastifyBaseLogger } from 'fastify';
import type { Pool } from 'pg';
import type { Config } from './config.ts';
import { circuitBreaker, type CircuitBreaker } from './core/placements/circuit-breaker.ts';
import type { DatabaseClock } from './core/postgres/database-clock.ts';
import { ensureWebhookPartitions } from './core/postgres/ensure-webhook-partitions.ts';
import { dropOldPartitions } from './core/retention/drop-old-partitions.ts';
import { endOrders } from './core/retention/end-orders.ts';
import { eraseMembers } from './core/retention/erase-members.ts';
import { runEvery } from './core/postgres/run-every.ts';
import { deleteOldTraffic } from './core/traffic/delete-old-traffic.ts';
import { deleteUnmatched } from './core/retention/delete-unmatched.ts';
import { renewConnections } from './core/locations/renew-connections.ts';
import { deleteOldGrants } from './core/locations/credential-store.ts';
import type { Placing } from './core/placements/placing.ts';
import { publishLive } from './core/live/publish-live.ts';
import type { Parked } from './core/statuses/redrive-parked.ts';
import type { WorkLoop } from './core/postgres/work-loop.ts';
import { workPlacements } from './core/placements/work-placements.ts';
import type { Readiness } from './http/health.ts';
import type { Observing } from './observe/start-observing.ts';
import { openStatusTopic } from './status-topic.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** What may be long overdue comes soon after the start: a process may never live for an hour. */
const SOON_MS = 5_000;
/** What is about no order of ours is kept as long as it may still become ours, and so long at least. */
const UNMATCHED_KEPT_S = 2 * 86_400;

/** What a process does without being asked. */
export type BackgroundWork = {
  relay: WorkLoop;
  placements: WorkLoop;
  breaker: CircuitBreaker;
  /** Finishes what is under way. */
  stop(): Promise<void>;
};

/** Starts the relay, the placement worker and the periodic work; the database must be ready. */
export async function startBackgroundWork(
  deps: Pick<Placing, 'refetch' | 'open' | 'onPosIds' | 'credentialsFor'> & {
    config: Config;
    pool: Pool;
    clock: DatabaseClock;
    log: FastifyBaseLogger;
    redrive: (parked: Parked) => Promise<void>;
    readiness: Readiness;
    observing: Observing;
  },
): Promise<BackgroundWork> {
  const { config, pool, clock, log, redrive, readiness, observing } = deps;
  const { observe } = observing;
  const topic = await openStatusTopic({ project: config.GOOGLE_CLOUD_PROJECT, topic: config.STATUS_TOPIC });
  const relay = publishLive({ pool, publish: topic.publish, log, observe });
  const breaker = circuitBreaker(log);
  const placements = workPlacements({
    ...deps,
    observe,
    breaker,
    now: clock.now,
    deadlineS: config.PLACEMENT_DEADLINE_S,
    onLive: relay.wake,
  });

  const sweepParked = (): Promise<void> => redrive({ withinS: config.PARK_TTL_S, unmatched: false });
  const unmatchedKeptS = Math.max(UNMATCHED_KEPT_S, config.PARK_TTL_S);
  const sweepUnmatched = (): Promise<void> => redrive({ withinS: unmatchedKeptS, unmatched: true });
  const lookAtDatabase = async (): Promise<void> => {
    readiness.database = await clock.follow().then(
      () => 'up' as const,
      () => 'down' as const,
    );
  };
  await lookAtDatabase();
  const stopping = new AbortController();
  const timers = [
    runEvery(2 * SECOND_MS, sweepParked, observe, 'sweep of parked events'),
    runEvery(2 * SECOND_MS, lookAtDatabase, observe, 'look at Postgres'),
    ...observing.tasks.map(({ name, work }) => runEvery(10 * SECOND_MS, work, observe, name, SECOND_MS)),
    runEvery(MINUTE_MS, sweepUnmatched, observe, 'sweep of unmatched events'),
    runEvery(MINUTE_MS, () => endOrders(pool, config.ORDER_END_S), observe, 'end of orders'),
    runEvery(HOUR_MS, () => ensureWebhookPartitions(pool), observe, 'creation of partitions'),
    runEvery(
      HOUR_MS,
      () => dropOldPartitions(pool, config.WEBHOOK_RETENTION_DAYS),
      observe,
      'dropping of partitions',
      SOON_MS,
    ),
    runEvery(HOUR_MS, () => deleteUnmatched(pool, unmatchedKeptS), observe, 'deletion of unmatched webhooks', SOON_MS),
    runEvery(HOUR_MS, () => deleteOldTraffic(pool), observe, 'deletion of old traffic', SOON_MS),
    runEvery(
      HOUR_MS,
      () => eraseMembers(pool, config.PII_RETENTION_DAYS, log),
      observe,
      'erasure of member data',
      SOON_MS,
    ),
    runEvery(
      DAY_MS,
      async () => {
        await renewConnections({ ...deps, now: clock.now, signal: stopping.signal });
        await deleteOldGrants(pool);
      },
      observe,
      'renewal of connections',
      MINUTE_MS,
    ),
  ];

  return {
    relay,
    placements,
    breaker,
    async stop() {
      stopping.abort();
      await Promise.all(timers.map((timer) => timer.stop()));
      await placements.stop();
      await relay.stop();
      await topic.close();
    },
  };
}
