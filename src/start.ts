import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import { buildApp } from './app.ts';
import { startBackgroundWork, type BackgroundWork } from './background-work.ts';
import { WrongSchema, checkSchema } from './check-schema.ts';
import type { Config } from './config.ts';
import type { Conflict } from './core/domain/webhook.ts';
import type { CircuitBreaker } from './core/placements/circuit-breaker.ts';
import { databaseClock, type DatabaseClock, type Now } from './core/postgres/database-clock.ts';
import { ensureWebhookPartitions } from './core/postgres/ensure-webhook-partitions.ts';
import { boardFeed } from './core/orders/board-feed.ts';
import { orderFeed } from './core/live/order-feed.ts';
import { batchWebhooks } from './core/statuses/batch-webhooks.ts';
import { batchPosIds } from './core/statuses/batch-pos-ids.ts';
import { credentialStore } from './core/locations/credential-store.ts';
import { settingsOpener } from './core/locations/locations.ts';
import type { Observed } from './core/domain/observed.ts';
import type { Registry } from './core/domain/provider.ts';
import { recordSignal } from './core/placements/record-signal.ts';
import { redriveParked, type Parked } from './core/statuses/redrive-parked.ts';
import { orderRefetcher, readOrderQuery } from './core/placements/refetch-order.ts';
import { tokenAuthenticator } from './core/locations/webhook-tokens.ts';
import type { WorkLoop } from './core/postgres/work-loop.ts';
import { FLUSHERS, openDatabase } from './database.ts';
import type { Readiness } from './http/health.ts';
import { createPushTokenVerifier, type VerifyPushToken } from './http/push-token.ts';
import { startObserving } from './observe/start-observing.ts';

const DATABASE_RETRY_MS = 1_000;
/** After this, calls under way are left behind: what they did is in doubt, and another process will find out. */
const FINISH_MS = 4_000;

export type Running = {
  app: FastifyInstance;
  /** Resolves when everything works, throws WrongSchema when it never will. */
  ready: Promise<void>;
  /** Stops taking, finishes what is under way, closes. */
  drain(): Promise<void>;
};

/** Ties the doors, the workers and the connections together, and listens. */
export async function start(config: Config, registry: Registry, log: FastifyBaseLogger): Promise<Running> {
  const query = await readOrderQuery(config.ORDER_QUERY_FILE);
  const open = settingsOpener({ registry, keys: config.SETTINGS_KEY, publicUrl: config.PUBLIC_URL });
  const { pool, flushPool } = openDatabase(config.DATABASE_URL, config.POOL_SIZE, (error) => {
    log.warn({ err: error }, 'lost an idle connection to Postgres');
  });
  const clock = databaseClock(pool);
  const readiness: Readiness = { ready: false, database: 'unknown' };
  const stopping = new AbortController();
  const loops: { relay?: WorkLoop; placements?: WorkLoop; breaker?: CircuitBreaker } = {};
  const observing = startObserving({
    config,
    log,
    integrations: registry.keys(),
    pool,
    flushPool,
    now: clock.now,
    readiness: () => readiness,
    breakers: () => loops.breaker?.states() ?? new Map(),
  });
  const { observe } = observing;
  const following = config.OPERATOR_TOKEN === undefined ? undefined : orderFeed({ pool, log });
  const board = config.OPERATOR_TOKEN === undefined ? undefined : boardFeed({ pool, log });
  const onLive = (): void => {
    loops.relay?.wake();
    following?.wake();
    board?.wake();
  };

  const redrive = async (parked: Parked): Promise<void> => {
    const began = performance.now();
    const { count, serviceOrderIds, conflicts } = await redriveParked(pool, parked, config.PARK_TTL_S);
    for (const conflict of conflicts) observe(toObserved(conflict));
    if (count === 0) return;
    observe({ what: 'redrive', serviceOrderIds, milliseconds: performance.now() - began });
    onLive();
  };
  const onPosIds = batchPosIds(
    (posIds) => redrive({ posIds }),
    (error) => log.warn({ err: error }, 'parked events left to the sweep'),
  );
  const gather = batchWebhooks({
    pool: flushPool,
    flushers: FLUSHERS,
    parkTtlS: config.PARK_TTL_S,
    observe,
    onRefused: (about) => log.warn(about, 'Postgres refuses a batch of webhooks'),
    onApplied(applied) {
      for (const conflict of applied.conflicts) observe(toObserved(conflict));
      if (applied.events.includes('applied')) onLive();
      onPosIds(applied.newPosIds);
    },
  });

  const keys = config.SETTINGS_KEY;
  const publicUrl = config.PUBLIC_URL ?? '';
  const credentialsFor = credentialStore(pool, keys);
  const app = buildApp({
    log,
    readiness: () => readiness,
    push: {
      verifyPushToken: pushTokenVerifier(config, clock.now),
      async recordSignal(serviceOrderId) {
        const recorded = await recordSignal(pool, serviceOrderId, config.PLACEMENT_DEADLINE_S);
        loops.placements?.wake();
        board?.wake();
        return recorded;
      },
      observe,
    },
    webhook: {
      now: clock.now,
      authenticateToken: tokenAuthenticator(pool, open, clock.now),
      accept: gather.accept,
      observe,
      keys,
      publicUrl,
      bodyLimit: config.WEBHOOK_BODY_LIMIT,
      bodyBudget: config.BODY_BUDGET,
      perSecond: config.WEBHOOK_SHARE,
    },
    operator:
      config.OPERATOR_TOKEN === undefined ||
      following === undefined ||
      board === undefined ||
      observing.metrics === undefined
        ? undefined
        : {
            token: config.OPERATOR_TOKEN,
            pool,
            now: clock.now,
            translating: { pool, open, keys, publicUrl },
            registry,
            credentialsFor,
            parkTtlS: config.PARK_TTL_S,
            follow: following.follow,
            watch: board.watch,
            metrics: observing.metrics,
            wake() {
              loops.placements?.wake();
              onLive();
            },
          },
  });
  await app.listen({ host: config.HOST, port: config.PORT });

  const begin = async (): Promise<BackgroundWork> => {
    await Promise.all([databaseReady(pool, clock, log, stopping.signal), observing.load()]);
    const refetch = orderRefetcher({ url: config.ORDER_API_URL, token: config.ORDER_API_TOKEN, query });
    const work = await startBackgroundWork({
      config,
      pool,
      clock,
      log,
      refetch,
      open,
      redrive,
      onPosIds,
      credentialsFor,
      readiness,
      observing,
    });
    loops.relay = work.relay;
    loops.placements = work.placements;
    loops.breaker = work.breaker;
    readiness.ready = !stopping.signal.aborted;
    log.info({ integrations: [...registry.keys()] }, 'ready');
    return work;
  };
  const begun = begin();

  return {
    app,
    ready: begun.then(() => {}),
    async drain() {
      log.info('draining');
      readiness.ready = false;
      stopping.abort();
      const placing = loops.placements?.stop();
      // The load balancer must see us gone before connections are refused.
      await sleep(config.DRAIN_DELAY_MS);
      const finished = (async () => {
        await app.close();
        await Promise.all([following?.stop(), board?.stop()]);
        await gather.drain();
        await placing;
        await begun.then(
          (work) => work.stop(),
          () => {},
        );
        await observing.close();
        await Promise.all([pool.end(), flushPool.end()]);
      })();
      const inTime = await Promise.race([finished.then(() => true), sleep(FINISH_MS, false, { ref: false })]);
      if (!inTime) log.warn('calls under way are left behind; another process goes on with them');
      app.server.closeAllConnections();
      log.info('stopped');
    },
  };
}

/** Waits for Postgres, as long as it takes; the wrong schema is worth no waiting. */
async function databaseReady(
  pool: Pool,
  clock: DatabaseClock,
  log: FastifyBaseLogger,
  stopping: AbortSignal,
): Promise<void> {
  while (!stopping.aborted) {
    try {
      await clock.follow();
      await checkSchema(pool);
      await ensureWebhookPartitions(pool);
      return;
    } catch (error) {
      if (error instanceof WrongSchema) throw error;
      log.error({ err: error }, 'Postgres cannot be reached; will try again');
      await sleep(DATABASE_RETRY_MS, undefined, { signal: stopping }).catch(() => {});
    }
  }
  throw new Error('stopped before Postgres could be reached');
}

function pushTokenVerifier(config: Config, now: Now): VerifyPushToken | undefined {
  if (config.PUSH_AUTH === 'off') return undefined;
  return createPushTokenVerifier(
    {
      jwksUrl: config.PUSH_JWKS_URL,
      issuer: config.PUSH_ISSUER,
      audience: config.PUSH_AUDIENCE ?? '',
      serviceAccount: config.PUSH_SERVICE_ACCOUNT ?? '',
    },
    now,
  );
}

function toObserved({ event, ...about }: Conflict): Observed {
  return { what: 'conflict', ...about, status: event.status };
}
