import type { FastifyInstance } from 'fastify';
import pg from 'pg';
import { buildApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { guardedFetch } from '../../src/core/egress/guarded-fetch.ts';
import { orderFeed } from '../../src/core/live/order-feed.ts';
import { credentialStore } from '../../src/core/locations/credential-store.ts';
import { settingsOpener } from '../../src/core/locations/locations.ts';
import { issueToken, tokenAuthenticator } from '../../src/core/locations/webhook-tokens.ts';
import { recordSignal } from '../../src/core/placements/record-signal.ts';
import { databaseClock } from '../../src/core/postgres/database-clock.ts';
import { ensureWebhookPartitions } from '../../src/core/postgres/ensure-webhook-partitions.ts';
import { watchDatabase } from '../../src/core/postgres/watch-database.ts';
import { NONE_WAITING } from '../../src/core/spill/spill-state.ts';
import { batchWebhooks } from '../../src/core/statuses/batch-webhooks.ts';
import { dropQuota } from '../../src/core/statuses/drop-quota.ts';
import { createLog } from '../../src/create-log.ts';
import { openDatabase } from '../../src/database.ts';
import { boundConnections } from '../../src/http/bound-connections.ts';
import { tokenJudge } from '../../src/http/judge-token.ts';
import { startObserving } from '../../src/observe/start-observing.ts';
import { operatorParts } from '../../src/operator-parts.ts';
import { asService } from './as-service.ts';
import { OPERATOR_TOKEN, sendAsIs, type OperatorAnswer } from './ask-operator.ts';
import { createDatabase } from './create-database.ts';
import { SHARED_ENV, UNHURRIED, fixturesOf, registryWith, type Fixtures } from './fixtures.ts';

export type Stage = Fixtures & {
  app: FastifyInstance;
  /** Of the role that owns the tables. */
  databaseUrl: string;
  env: Record<string, string>;
  /** As the process's role. */
  pool: pg.Pool;
  /** All log lines. */
  logged: string[];
  /** How often an operator's request woke the workers. */
  woken(): number;
  /** The path of a location's webhooks, with a new token. */
  webhookPath(locationId: string): Promise<string>;
  /** Posts JSON. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<OperatorAnswer>;
  /** Forgets who operators are, as the service does after two seconds. */
  lookAnew(): void;
  /** Listens, for streams and odd paths. @returns the URL */
  listen(): Promise<string>;
  /** Stops as SIGTERM would. Safe to repeat. */
  drain(): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Builds the service's HTTP routes over a database: those of operators, and the webhooks', which fill it. There are no
 * workers, no Pub/Sub and no ordering platform, and nothing listens until `listen`. A second stage on the database of
 * the first is another process.
 */
export async function startStage(
  about: { env?: Record<string, string>; providers?: Provider[]; databaseUrl?: string } = {},
): Promise<Stage> {
  const databaseUrl = about.databaseUrl ?? (await createDatabase());
  const env = {
    DATABASE_URL: asService(databaseUrl),
    ...SHARED_ENV,
    HOST: '127.0.0.1',
    ORDER_API_URL: 'http://127.0.0.1:9/graphql',
    ...(about.env ?? { OPERATOR_TOKEN }),
  };
  const config = readConfig(env);
  const { SETTINGS_KEY: keys, PARK_TTL_S: parkTtlS, ALLOW_PRIVATE_HOSTS: allowedHosts } = config;
  const publicUrl = config.PUBLIC_URL ?? '';
  const registry = registryWith(about.providers);
  const logged: string[] = [];
  const log = createLog(config.LOG_LEVEL, { write: (line: string) => void logged.push(line) });
  const { pool, flushPool } = openDatabase(config.DATABASE_URL, config.POOL_SIZE, () => {});
  const ownerPool = new pg.Pool({ connectionString: databaseUrl, max: 2 });
  ownerPool.on('error', () => {});
  const clock = databaseClock(pool);
  const { now } = clock;
  await clock.follow();
  await ensureWebhookPartitions(pool);
  const watch = watchDatabase(flushPool);
  const connections = boundConnections(1_000, log);
  const readiness = (): { ready: boolean; database: 'up' } => ({ ready: true, database: 'up' });
  const observing = startObserving({
    config,
    log,
    integrations: registry.keys(),
    pool,
    flushPool,
    now,
    readiness,
    spill: undefined,
    breakers: () => new Map(),
    connections: connections.counts,
    droppedLines: () => 0,
  });
  const { observe } = observing;
  let loading: Promise<void> | undefined;
  const open = settingsOpener({ registry, keys, publicUrl: config.PUBLIC_URL });
  const feed = orderFeed({ pool, log });
  let woken = 0;
  const onLive = (): void => {
    feed.wake();
    operator?.wake();
  };
  const operator = await operatorParts(config, {
    log,
    pool,
    now,
    translating: { pool, open, keys, publicUrl },
    registry,
    credentialsFor: credentialStore(pool, keys),
    posFetch: guardedFetch(allowedHosts),
    allowedHosts,
    parkTtlS,
    async metrics() {
      await (loading ??= observing.load());
      return observing.metrics();
    },
    readiness,
    spillState: () => NONE_WAITING,
    follow: feed.follow,
    observe,
    wake() {
      woken += 1;
      onLive();
    },
  });
  const batches = batchWebhooks({
    pool: flushPool,
    parkTtlS,
    observe,
    onRefused: () => {},
    onLocked: () => {},
    onApplied: onLive,
    flushers: 1,
  });
  const app = buildApp({
    log,
    proxies: config.TRUSTED_PROXIES,
    connections,
    readiness,
    outside: {
      push: {
        verifyPushToken: undefined,
        recordSignal: (serviceOrderId) => recordSignal(pool, serviceOrderId, config.PLACEMENT_DEADLINE_S),
        observe,
      },
      webhook: {
        now,
        keys,
        publicUrl,
        quota: dropQuota(pool, { table: 'dropped_bytes', bytes: config.DROPPED_QUOTA, now, onSpent: () => {} }),
        bodyLimit: config.WEBHOOK_BODY_LIMIT,
        judgeToken: tokenJudge(tokenAuthenticator(pool, open, now), watch, undefined),
        accept: batches.accept,
        watch,
        spill: undefined,
        keepRefused: undefined,
        observe,
        bodyBudget: config.BODY_BUDGET,
        perSecond: config.WEBHOOK_SHARE,
        limits: UNHURRIED,
      },
    },
    operator: operator?.door,
  });
  let url: Promise<string> | undefined;
  let drained: Promise<void> | undefined;
  const drain = async (): Promise<void> => {
    await app.close();
    await Promise.all([operator?.stop(), feed.stop()]);
    await batches.drain();
    watch.stop();
    await observing.close();
    await Promise.all([pool.end(), flushPool.end()]);
  };
  const stage: Stage = {
    ...fixturesOf({ pool, ownerPool, registry, config }),
    app,
    databaseUrl,
    env,
    pool,
    logged,
    woken: () => woken,
    async webhookPath(locationId) {
      const { token, integration } = await issueToken(pool, { locationId, expiresAt: undefined });
      return `/webhook/${integration}/${encodeURIComponent(locationId)}?token=${token}`;
    },
    post: (path, body, headers) =>
      sendAsIs(app, path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' || body instanceof Buffer ? body : JSON.stringify(body),
      }),
    lookAnew: () => operator?.door.identify.lookAnew(),
    listen: () => (url ??= app.listen({ host: '127.0.0.1', port: 0 })),
    drain: () => (drained ??= drain()),
    async stop() {
      await stage.drain();
      await ownerPool.end();
    },
  };
  return stage;
}
