import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import type { Pool } from 'pg';
import { WrongSchema, checkSchema } from './check-schema.ts';
import type { Config } from './config.ts';
import { quietAsker } from './core/asks/quiet-asker.ts';
import type { Observed } from './core/domain/observed.ts';
import type { Registry } from './core/domain/provider.ts';
import { loadPhones } from './core/domain/to-e164.ts';
import type { Conflict, PosId } from './core/domain/webhook.ts';
import { guardedFetch, loadUndici } from './core/egress/guarded-fetch.ts';
import { orderFeed } from './core/live/order-feed.ts';
import { publishLive } from './core/live/publish-live.ts';
import { recordFollowed } from './core/live/record-followed.ts';
import { credentialStore } from './core/locations/credential-store.ts';
import { findLocation, settingsOpener } from './core/locations/locations.ts';
import { tokenAuthenticator } from './core/locations/webhook-tokens.ts';
import { circuitBreaker } from './core/placements/circuit-breaker.ts';
import { loadGraphqlRequest } from './core/placements/fetch-order-data.ts';
import { recordSignal } from './core/placements/record-signal.ts';
import { orderRefetcher } from './core/placements/refetch-order.ts';
import { refetchUnlessRefused } from './core/placements/refetch-unless-refused.ts';
import { retryUnread } from './core/placements/retry-unread.ts';
import { workCancellations } from './core/cancellations/work-cancellations.ts';
import { workLooks } from './core/cancellations/work-looks.ts';
import { workPlacements } from './core/placements/work-placements.ts';
import { databaseClock, type DatabaseClock, type Now } from './core/postgres/database-clock.ts';
import { ensureWebhookPartitions } from './core/postgres/ensure-webhook-partitions.ts';
import { watchDatabase } from './core/postgres/watch-database.ts';
import { NONE_WAITING, type SpillState } from './core/spill/spill-state.ts';
import type { Applied } from './core/statuses/apply-webhooks.ts';
import { batchWebhooks } from './core/statuses/batch-webhooks.ts';
import { dropQuota } from './core/statuses/drop-quota.ts';
import { REFUSED_QUOTA, refusedKeeper } from './core/statuses/keep-refused.ts';
import { redriveParked } from './core/statuses/redrive-parked.ts';
import { FLUSHERS, openDatabase } from './database.ts';
import { explainDatabaseError } from './explain-database-error.ts';
import { followParts, isFollowed } from './follow-parts.ts';
import { boundConnections } from './http/bound-connections.ts';
import type { Readiness } from './http/health.ts';
import { tokenJudge } from './http/judge-token.ts';
import { mostConnections } from './http/most-connections.ts';
import { createPushTokenVerifier, type VerifyPushToken } from './http/push-token.ts';
import { ANSWER_LIMITS, type AnswerLimits } from './http/webhook-door.ts';
import { listen, type Listeners } from './listen.ts';
import { startObserving } from './observe/start-observing.ts';
import { operatorParts } from './operator-parts.ts';
import { periodicWork } from './periodic-work.ts';
import { loadOrderModule } from './platform/load-order-module.ts';
import { pubsubConnection } from './pubsub-connection.ts';
import { spillParts } from './spill-parts.ts';
import { statusTopic } from './status-topic.ts';

const DATABASE_RETRY_MS = 1_000;
/** Pause between what is loaded once the process is ready. */
const LOAD_EVERY_MS = 100;
/** Time until a start that still waits for Postgres says so again. */
const TELL_AGAIN_MS = 60_000;

export type Running = Pick<Listeners, 'app' | 'operatorApp'> & {
  /** Resolves when everything works, throws WrongSchema if it never will. */
  ready: Promise<void>;
  /** Stops accepting, finishes what is under way, closes. */
  drain(): Promise<void>;
};

/**
 * Connects the doors, the workers and the connections, and listens. The workers start once Postgres is ready.
 * @param droppedLines the number of log lines dropped so far
 */
export async function start(
  config: Config,
  registry: Registry,
  log: FastifyBaseLogger,
  droppedLines: () => number,
  limits: AnswerLimits = ANSWER_LIMITS,
): Promise<Running> {
  const { SETTINGS_KEY: keys, ALLOW_PRIVATE_HOSTS: allowedHosts } = config;
  const { PARK_TTL_S: parkTtlS, PLACEMENT_DEADLINE_S: deadlineS } = config;
  const refetch = orderRefetcher({
    url: config.ORDER_API_URL,
    token: config.ORDER_API_TOKEN,
    module: await loadOrderModule(config),
    countryOf: async (locationId) => (await findLocation(pool, locationId))?.country ?? null,
    warn: (problem) => log.warn(problem),
  });
  const open = settingsOpener({ registry, keys, publicUrl: config.PUBLIC_URL });
  const { pool, flushPool } = openDatabase(config.DATABASE_URL, config.POOL_SIZE, (error) => {
    log.warn({ err: error }, 'lost an idle connection to Postgres');
  });
  const clock = databaseClock(pool);
  const credentialsFor = credentialStore(pool, keys);
  const posFetch = guardedFetch(allowedHosts);
  let isReady = false;
  const watch = watchDatabase(flushPool, (isAway) => spill?.onDatabase(isAway));
  const readiness = (): Readiness => ({ ready: isReady, database: watch.state() });
  const spillState = (): SpillState => spill?.state() ?? NONE_WAITING;
  const breaker = circuitBreaker(log);
  const most = mostConnections(isFollowed(config) ? config.FOLLOW_STREAMS_MAX : 0);
  const connections = boundConnections(most.connections, log);
  const observing = startObserving({
    config,
    log,
    integrations: registry.keys(),
    pool,
    flushPool,
    now: clock.now,
    readiness,
    spill: config.SPILL_TOPIC === undefined ? undefined : spillState,
    breakers: breaker.states,
    connections: connections.counts,
    droppedLines,
  });
  const { observe } = observing;

  const connection = pubsubConnection(config.GOOGLE_CLOUD_PROJECT);
  const topic = statusTopic(connection, {
    name: config.STATUS_TOPIC,
    tracedShare: config.OTEL_EXPORTER_OTLP_ENDPOINT === undefined ? undefined : config.OTEL_TRACES_SAMPLER_ARG,
  });
  const relay = publishLive({ pool, publish: topic.publish, log, observe });
  const translating = { pool, open, keys, publicUrl: config.PUBLIC_URL ?? '' };
  const wake = (): void => {
    placements.wakeForAll();
    cancellations.wake();
    onLive();
  };
  const feed = orderFeed({ pool, log });
  const following = followParts(config, { feed, most: most.streams, now: clock.now, observe, log });
  const writeFollowed = following && recordFollowed(pool, following.streams.followed);
  const operator = await operatorParts(config, {
    log,
    pool,
    now: clock.now,
    translating,
    registry,
    credentialsFor,
    posFetch,
    allowedHosts,
    parkTtlS,
    metrics: observing.metrics,
    readiness,
    spillState,
    follow: feed.follow,
    observe,
    wake,
  });
  const onLive = (): void => {
    relay.wake();
    feed.wake();
    operator?.wake();
  };

  const redrive = async (posIds: readonly PosId[]): Promise<void> => {
    for (const posId of posIds) {
      const began = performance.now();
      try {
        const { count, serviceOrderId, conflicts } = await redriveParked(pool, posId);
        for (const conflict of conflicts) observe(toObserved(conflict));
        if (count === 0) continue;
        observe({ what: 'redrive', serviceOrderIds: [serviceOrderId], milliseconds: performance.now() - began });
        onLive();
      } catch (error) {
        log.warn({ ...posId, err: error }, 'parked events left to the sweep');
      }
    }
  };
  const onAwaited = (posIds: readonly PosId[]): void => void redrive(posIds);
  const onApplied = (applied: Applied): void => {
    for (const conflict of applied.conflicts) observe(toObserved(conflict));
    if (applied.events.includes('applied')) onLive();
    onAwaited(applied.awaited);
  };
  const batching: Omit<Parameters<typeof batchWebhooks>[0], 'flushers'> = {
    pool: flushPool,
    parkTtlS,
    observe,
    onRefused: (about) => log.warn(about, 'Postgres refuses a batch of webhooks'),
    onLocked: ({ locationId, id, events }) =>
      log.warn(
        { locationId, webhookId: id, serviceOrderIds: events.map((event) => event.serviceOrderId) },
        'a row is locked: webhooks about the same orders wait aside',
      ),
    onApplied,
  };
  const batches = batchWebhooks({ ...batching, flushers: FLUSHERS });
  /** Of what comes from the spill, so that no webhook waits behind it. */
  const drained = batchWebhooks({ ...batching, flushers: 1 });
  /** Of what was refused, likewise, and over no connection of theirs. */
  const refused = batchWebhooks({ ...batching, pool, flushers: 1 });
  const forward = {
    pool,
    refetch: refetchUnlessRefused(refetch),
    open,
    now: clock.now,
    credentialsFor,
    posFetch,
    deadlineS,
    log,
    observe,
    breaker,
    onLive,
  };
  const placements = workPlacements({ ...forward, missingS: config.MISSING_ORDER_S, onAwaited });
  const cancellations = workCancellations(forward);
  const looks = workLooks({ ...forward, onDue: wake });
  const quota = dropQuota(pool, {
    table: 'dropped_bytes',
    bytes: config.DROPPED_QUOTA,
    now: clock.now,
    onSpent: (locationId) =>
      log.error(
        { locationId },
        'webhooks that nothing proves to be of the POS are beyond DROPPED_QUOTA: no longer kept today',
      ),
  });
  const refusedQuota = dropQuota(pool, {
    table: 'refused_bytes',
    bytes: REFUSED_QUOTA,
    now: clock.now,
    onSpent: (locationId) =>
      log.warn({ locationId }, 'webhooks that are refused for an old token are too many: no longer kept today'),
  });
  const keeping = { keys, quota, publicUrl: translating.publicUrl, bodyLimit: config.WEBHOOK_BODY_LIMIT };
  const spill = spillParts(config, {
    ...keeping,
    connection,
    pool,
    open,
    now: clock.now,
    accept: drained.accept,
    observe,
    log,
  });
  const asker = quietAsker({
    pool,
    registry,
    open,
    now: clock.now,
    credentialsFor,
    posFetch,
    parkTtlS,
    breaker,
    observe,
    onApplied,
  });
  const writeNotKept = async (): Promise<void> => void (await Promise.all([quota.write(), refusedQuota.write()]));
  const tasks = [...observing.tasks, { name: 'recording of webhooks not kept' as const, work: writeNotKept }];
  const periodic = periodicWork({
    config,
    pool,
    flushPool,
    clock,
    log,
    observe,
    open,
    credentialsFor,
    posFetch,
    redrive,
    asker,
    wake,
    watch,
    refreshTokens: spill?.list.refresh,
    writeFollowed,
    tasks,
  });

  const listeners = await listen(config, {
    log,
    proxies: config.TRUSTED_PROXIES,
    connections,
    readiness,
    outside: {
      push: {
        verifyPushToken: pushTokenVerifier(config, clock.now),
        async recordSignal(serviceOrderId) {
          const recorded = await recordSignal(pool, serviceOrderId, deadlineS);
          placements.wake();
          looks.wake();
          operator?.wake();
          return recorded;
        },
        observe,
      },
      webhook: {
        now: clock.now,
        ...keeping,
        judgeToken: tokenJudge(tokenAuthenticator(pool, open, clock.now), watch, spill?.list),
        accept: batches.accept,
        watch,
        spill: spill?.put,
        keepRefused:
          config.REFUSED_KEEP === 0 ? undefined : refusedKeeper({ keys, quota: refusedQuota, accept: refused.accept }),
        observe,
        bodyBudget: config.BODY_BUDGET,
        perSecond: config.WEBHOOK_SHARE,
        limits,
      },
      follow: following?.door,
    },
    operator: operator?.door,
  });

  const stopping = new AbortController();
  const begin = async (): Promise<void> => {
    const loadTokens = async (): Promise<void> => spill?.list.load();
    await Promise.all([databaseReady({ pool, clock, loadTokens }, log, stopping.signal), observing.load()]);
    // The largest, and the relay needs it at once.
    await connection.load();
    await watch.look();
    if (stopping.signal.aborted) return;
    // They come again within half a minute as well.
    await retryUnread(pool).catch((error: unknown) => log.warn({ err: error }, 'held orders are not tried at once'));
    relay.start();
    placements.start();
    looks.start();
    cancellations.start();
    periodic.start();
    isReady = true;
    log.info({ integrations: [...registry.keys()] }, 'ready');
    void loadForOrders();
  };
  /** Loads what the first order needs, one after the other: what comes meanwhile waits for one at the most. */
  const loadForOrders = async (): Promise<void> => {
    for (const load of [loadGraphqlRequest, loadPhones, loadUndici]) {
      await sleep(LOAD_EVERY_MS, undefined, { ref: false });
      if (stopping.signal.aborted) return;
      try {
        await load();
      } catch (error) {
        log.warn({ err: error }, 'not loaded ahead: the first order tries again');
      }
    }
  };
  const ready = begin();

  return {
    app: listeners.app,
    operatorApp: listeners.operatorApp,
    ready,
    async drain() {
      log.info('draining');
      isReady = false;
      stopping.abort();
      const placing = Promise.all([placements.stop(), looks.stop(), cancellations.stop()]);
      // The load balancer must stop sending before connections are refused.
      await sleep(config.DRAIN_DELAY_MS);
      const finished = (async () => {
        // From here on no load balancer sends them here again.
        await Promise.all([following?.streams.drain(config.DRAIN_FINISH_MS / 2), listeners.close()]);
        await Promise.all([operator?.stop(), feed.stop()]);
        await spill?.stop();
        await Promise.all([batches.drain(), drained.drain(), refused.drain()]);
        await placing;
        await ready.catch(() => {});
        await periodic.stop();
        await relay.stop();
        // What is not taken back goes out of date.
        await writeFollowed?.().catch(() => {});
        await writeNotKept().catch((error: unknown) =>
          log.warn({ err: error }, 'a count of webhooks not kept is lost'),
        );
        watch.stop();
        await connection.close();
        await observing.close();
        await Promise.all([pool.end(), flushPool.end()]);
      })();
      // Calls that are left behind are in doubt, and another process resolves them.
      const late = sleep(config.DRAIN_FINISH_MS, false, { ref: false });
      const inTime = await Promise.race([finished.then(() => true), late]);
      if (!inTime) log.warn('calls under way are left behind; another process goes on with them');
      listeners.cutOff();
      log.info('stopped');
    },
  };
}

/** Waits for Postgres without limit, and says why: at once, when it changes, and now and then. A wrong schema ends it. */
async function databaseReady(
  { pool, clock, loadTokens }: { pool: Pool; clock: DatabaseClock; loadTokens: () => Promise<void> },
  log: FastifyBaseLogger,
  stopping: AbortSignal,
): Promise<void> {
  let told = { words: '', at: 0 };
  while (!stopping.aborted) {
    try {
      await clock.follow();
      await checkSchema(pool);
      await ensureWebhookPartitions(pool);
      await loadTokens();
      return;
    } catch (error) {
      if (error instanceof WrongSchema) throw error;
      const { found, toDo } = explainDatabaseError(error);
      const words = `Postgres cannot be used, and is tried again every second: ${found}; ${toDo}`;
      if (words !== told.words || performance.now() - told.at > TELL_AGAIN_MS) {
        told = { words, at: performance.now() };
        log.error(words);
      }
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
