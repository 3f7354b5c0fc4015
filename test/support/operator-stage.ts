import type { FastifyInstance } from 'fastify';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { hasOperators, readConfig } from '../../src/config/config.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { issueToken } from '../../src/core/locations/webhook-tokens.ts';
import { recordSignals } from '../../src/core/signals/record-signals.ts';
import { signalTokenAuthenticator } from '../../src/core/signals/signal-tokens.ts';
import { signalVerifier } from '../../src/http/verify-signal.ts';
import { ensureWebhookPartitions } from '../../src/core/postgres/ensure-webhook-partitions.ts';
import { createLog } from '../../src/observe/create-log.ts';
import type { AnswerLimits } from '../../src/http/webhook-routes.ts';
import { boundConnections } from '../../src/http/bound-connections.ts';
import { processLifecycle } from '../../src/server/process-lifecycle.ts';
import { addEndpoints, createListener } from '../../src/server/listener.ts';
import { noticesModule } from '../../src/server/modules/notices.ts';
import { liveModule } from '../../src/server/modules/live.ts';
import { webhooksModule } from '../../src/server/modules/webhooks.ts';
import { operatorDeps } from '../../src/server/operators.ts';
import { database } from '../../src/server/plugins/database.ts';
import { observability } from '../../src/server/plugins/observability.ts';
import { providers } from '../../src/server/plugins/providers.ts';
import { pubsub } from '../../src/server/plugins/pubsub.ts';
import { asService } from '../../world/system/as-service.ts';
import { OPERATOR_TOKEN, sendAsIs, type OperatorAnswer } from '../../world/system/ask-operator.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { SHARED_ENV, UNHURRIED, fixturesOf, registryWith, type Fixtures } from '../../world/system/fixtures.ts';

/** Nobody listens there. A process without a gateway or a mail server has no links to answer. */
const GATEWAY = {
  NOTIFY_WEBHOOK_URL: 'http://127.0.0.1:9/',
  NOTIFY_WEBHOOK_SECRET: ['whsec_uXSTSfXgg8kzmIxQyTK4K3Ifz9PEVE0BY56bvNO1az4='],
};

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
  /** Stores how many webhooks were not stored, as the service does periodically. */
  writeNotStored(): Promise<void>;
  /** Has the board look for problems now, as it does every two seconds. */
  lookForProblems(): void;
  /** Forgets who operators are, as the service does after two seconds. */
  invalidateCache(): void;
  /** Listens, for streams and odd paths. @returns the URL */
  listen(): Promise<string>;
  /** Stops as SIGTERM would. Safe to repeat. */
  drain(): Promise<void>;
  stop(): Promise<void>;
};

/** A stage that stops when the test has finished. */
export async function stageOfTest(about: Parameters<typeof startStage>[0]): Promise<Stage> {
  const stage = await startStage(about);
  onTestFinished(() => stage.stop());
  return stage;
}

/**
 * Builds the service's HTTP routes over a database: those of operators, and the webhooks', which fill it. There are no
 * workers, no Pub/Sub and no ordering platform, and nothing listens until `listen`. A second stage on the database of
 * the first is another process.
 */
export async function startStage(
  about: { env?: Record<string, string>; providers?: Provider[]; databaseUrl?: string; limits?: AnswerLimits } = {},
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
  const registry = registryWith(about.providers);
  const logged: string[] = [];
  const log = createLog(config.LOG_LEVEL, { write: (line: string) => void logged.push(line) });
  const connections = boundConnections(1_000, log);
  const app = createListener({
    log,
    proxies: config.TRUSTED_PROXIES,
    connections,
    forOperators: hasOperators(config),
    bodyLimit: config.WEBHOOK_BODY_LIMIT,
  });
  await app.register(database, config);
  await app.register(providers, { config, registry });
  await app.register(observability, config);
  await app.register(pubsub, config);
  const { pool, clock, watch, close } = app.database;
  const ownerPool = new pg.Pool({ connectionString: databaseUrl, max: 2 });
  ownerPool.on('error', () => {});
  await clock.follow();
  await ensureWebhookPartitions(pool);
  const readiness = (): { ready: boolean; database: 'up' } => ({ ready: true, database: 'up' });
  const live = await liveModule(app, config, 0);
  const webhooks = webhooksModule(app, config, { live, limits: about.limits ?? UNHURRIED });
  let woken = 0;
  const wake = (): void => {
    woken += 1;
    live.notify();
  };
  const { load, metrics, observe } = app.observability;
  const recordSignal = recordSignals(pool, config.PLACEMENT_DEADLINE_S);
  let loading: Promise<void> | undefined;
  const sources = {
    readiness,
    spill: undefined,
    breakers: () => new Map(),
    connections: connections.counts,
    droppedLines: () => 0,
  };
  const modules = { live, webhooks, orders: { wake }, notices: noticesModule(app, config, { wake }) };
  const operator = await operatorDeps(app, config, { readiness, ...modules, env, isForwarded: () => false });
  addEndpoints(
    app,
    {
      readiness,
      outside: {
        push: { verifyPushToken: undefined, recordSignal, observe },
        signal: {
          authenticateToken: signalTokenAuthenticator(pool, config.SETTINGS_KEY, clock.now),
          verify: signalVerifier(clock.now, app.providers.posFetch),
          recordSignal,
          observe,
        },
        webhook: webhooks.endpoint,
        answers: noticesModule(app, { ...config, ...GATEWAY }, { wake }).endpoint,
      },
      operator: operator && {
        ...operator,
        async metrics() {
          await (loading ??= load(sources));
          return metrics();
        },
      },
    },
    connections.authenticate,
  );
  const { stop } = processLifecycle(
    [
      { name: 'database', stop: close },
      { name: 'observability', stop: app.observability.close },
      { name: 'database watch', stop: watch.stop },
      webhooks.batches,
      live.feeds,
      { name: 'listener', stop: () => app.close() },
    ],
    log,
  );
  let url: Promise<string> | undefined;
  let drained: Promise<void> | undefined;
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
    writeNotStored: webhooks.writeNotStored,
    lookForProblems: () => live.board?.wakeAttention(),
    invalidateCache: () => operator?.identify.invalidateCache(),
    listen: () => (url ??= app.listen({ host: '127.0.0.1', port: 0 })),
    drain: () => (drained ??= stop()),
    async stop() {
      await stage.drain();
      await ownerPool.end();
    },
  };
  return stage;
}
