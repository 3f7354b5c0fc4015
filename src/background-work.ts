import type { FastifyBaseLogger } from 'fastify';
import type { Pool } from 'pg';
import type { Config } from './config.ts';
import type { DatabaseClock } from './core/database-clock.ts';
import { ensureDeliveryPartitions } from './core/delivery-partitions.ts';
import { endOrders } from './core/end-orders.ts';
import { every } from './core/every.ts';
import type { Placing } from './core/placing.ts';
import { publishLive } from './core/publish-live.ts';
import type { Parked } from './core/redrive-parked.ts';
import type { WorkLoop } from './core/work-loop.ts';
import { workPlacements } from './core/work-placements.ts';
import type { Readiness } from './http/health.ts';
import { openStatusTopic } from './status-topic.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
/** As long as unmatched events are kept. */
const UNMATCHED_KEPT_S = 2 * 86_400;

/** What a process does without being asked. */
export type BackgroundWork = {
  relay: WorkLoop;
  placements: WorkLoop;
  /** Finishes what is under way. */
  stop(): Promise<void>;
};

/** Starts the relay, the placement worker and the periodic work; the database must be ready. */
export async function startBackgroundWork(
  deps: Pick<Placing, 'refetch' | 'open' | 'onPosIds'> & {
    config: Config;
    pool: Pool;
    clock: DatabaseClock;
    log: FastifyBaseLogger;
    redrive: (parked: Parked) => Promise<void>;
    readiness: Readiness;
  },
): Promise<BackgroundWork> {
  const { config, pool, clock, log, redrive, readiness } = deps;
  const topic = await openStatusTopic({ project: config.GOOGLE_CLOUD_PROJECT, topic: config.STATUS_TOPIC });
  const relay = publishLive({ pool, publish: topic.publish, log });
  const placements = workPlacements({
    ...deps,
    now: clock.now,
    deadlineS: config.PLACEMENT_DEADLINE_S,
    onLive: relay.wake,
  });

  const sweepParked = (): Promise<void> => redrive({ withinS: config.PARK_TTL_S, unmatched: false });
  const sweepUnmatched = (): Promise<void> => redrive({ withinS: UNMATCHED_KEPT_S, unmatched: true });
  const lookAtDatabase = async (): Promise<void> => {
    readiness.database = await clock.follow().then(
      () => 'up' as const,
      () => 'down' as const,
    );
  };
  await lookAtDatabase();
  const timers = [
    every(2 * SECOND_MS, sweepParked, log, 'sweep of parked events'),
    every(2 * SECOND_MS, lookAtDatabase, log, 'look at Postgres'),
    every(MINUTE_MS, sweepUnmatched, log, 'sweep of unmatched events'),
    every(MINUTE_MS, () => endOrders(pool, config.ORDER_END_S), log, 'end of orders'),
    every(60 * MINUTE_MS, () => ensureDeliveryPartitions(pool), log, 'making of partitions'),
  ];

  return {
    relay,
    placements,
    async stop() {
      await Promise.all(timers.map((timer) => timer.stop()));
      await placements.stop();
      await relay.stop();
      await topic.close();
    },
  };
}
