import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { hasOperators, isPushed, type Config } from '../config/config.ts';
import { describeWays } from '../config/describe-ways.ts';
import type { Registry } from '../core/domain/provider.ts';
import { loadPhones } from '../core/domain/to-e164.ts';
import { loadUndici } from '../core/egress/guarded-fetch.ts';
import { loadGraphqlRequest } from '../core/placements/ask-platform.ts';
import { boundConnections, mostConnections, type Connections } from '../http/bound-connections.ts';
import type { Readiness } from '../http/health.ts';
import type { MetricSources } from '../observe/start-observing.ts';
import { ANSWER_LIMITS, type AnswerLimits } from '../http/webhook-routes.ts';
import { NAME_PROXIES, findWeakVariables } from '../config/find-weak-variables.ts';
import { jobs, type Modules } from './jobs.ts';
import { processLifecycle, type Part } from './process-lifecycle.ts';
import { addEndpoints, buildListener, createListener, listenersOf, type Listeners } from './listener.ts';
import { attentionModule } from './modules/attention.ts';
import { kitchensModule } from './modules/kitchens.ts';
import { isFollowed, liveModule } from './modules/live.ts';
import { noticesModule } from './modules/notices.ts';
import { ordersModule } from './modules/orders.ts';
import { webhooksModule } from './modules/webhooks.ts';
import { operatorDeps } from './operators.ts';
import { database } from './plugins/database.ts';
import { observability } from './plugins/observability.ts';
import { providers } from './plugins/providers.ts';
import { pubsub } from './plugins/pubsub.ts';

/** Pause between the libraries that are loaded after the process is ready. */
const LOAD_EVERY_MS = 100;

export type Server = {
  app: FastifyInstance;
  /** The same as `app` if OPERATOR_PORT is unset or equals PORT. */
  operatorApp: FastifyInstance;
  /** The parts of the process, in the order of their start. */
  parts: readonly Part[];
  listen(): Promise<void>;
  /** Resolves when everything works. @throws WrongSchema if the database cannot be used until an operator acts */
  start(): Promise<void>;
  /** Stops accepting requests, finishes the running requests, and closes all connections. */
  drain(): Promise<void>;
};

type About = {
  registry: Registry;
  log: FastifyBaseLogger;
  env: NodeJS.ProcessEnv;
  droppedLines?: () => number;
  limits?: AnswerLimits;
  /** Whether a loop or a job is started, by its name. By default all are. */
  runs?: (loop: string) => boolean;
};
/** Builds the service. It does not connect or listen yet. */
export async function buildServer(config: Config, about: About): Promise<Server> {
  const { registry, log, limits = ANSWER_LIMITS } = about;
  const most = mostConnections(isFollowed(config) ? config.FOLLOW_STREAMS_MAX : 0);
  const connections = boundConnections(most.connections, log);
  for (const { name, found, toDo } of findWeakVariables(config)) log.warn(`${name}: ${found}; ${toDo}`);
  log.info(describeWays(config));
  let isForwarded = false;
  const onForwarded = (): void => {
    if (!isForwarded) log.warn(`requests came by a proxy that is not trusted; ${NAME_PROXIES}`);
    isForwarded = true;
  };
  const listener = { log, proxies: config.TRUSTED_PROXIES, connections, onForwarded };
  const { PORT, OPERATOR_PORT } = config;
  const isApart = OPERATOR_PORT !== undefined && (OPERATOR_PORT === 0 || OPERATOR_PORT !== PORT);
  const forOperators = hasOperators(config) && !isApart;
  const app = createListener({ ...listener, forOperators, bodyLimit: config.WEBHOOK_BODY_LIMIT });

  await app.register(database, config);
  await app.register(providers, { config, registry });
  await app.register(observability, config);
  await app.register(pubsub, config);

  const live = await liveModule(app, config, most.streams);
  const webhooks = webhooksModule(app, config, { live, limits });
  const orders = await ordersModule(app, config, { live, webhooks, env: about.env });
  const kitchens = kitchensModule(app, config, orders);
  const notices = noticesModule(app, config, orders);
  const attention = attentionModule(app, config);
  const modules = { live, webhooks, orders, kitchens, notices, attention };

  const { readiness, part: ready } = readinessOf(app);
  const operator = await operatorDeps(app, config, {
    ...modules,
    readiness,
    env: about.env,
    isForwarded: () => isForwarded,
  });
  const outside = {
    push: isPushed(config) ? orders.push : undefined,
    signal: orders.signal,
    webhook: webhooks.endpoint,
    follow: live.members?.endpoint,
    availability: kitchens.endpoint,
    answers: notices.endpoint,
  };
  addEndpoints(app, { readiness, outside, operator: isApart ? undefined : operator }, connections.authenticate);
  const operatorApp = isApart ? buildListener({ ...listener, readiness, operator }) : app;

  const sources = {
    readiness,
    spill: webhooks.spill?.state,
    breakers: orders.breaker.states,
    connections: connections.counts,
    droppedLines: about.droppedLines ?? (() => 0),
  };
  const listeners = listenersOf(config, [app, operatorApp]);
  const parts = partsOf(app, config, { modules, sources, listeners, ready });
  const { start, stop } = processLifecycle(parts, log, about.runs);
  return {
    app,
    operatorApp,
    parts,
    listen: listeners.listen,
    start,
    drain: () => drain(config, log, { stop, listeners, connections }),
  };
}

/** The parts in the order of their start. They stop in reverse order, so a stopping part may use the parts above it. */
function partsOf(
  app: FastifyInstance,
  config: Config,
  about: { modules: Modules; sources: MetricSources; listeners: Listeners; ready: Part },
): Part[] {
  const { database, observability, pubsub } = app;
  const { modules, sources, listeners, ready } = about;
  const { live, webhooks, orders, kitchens, notices, attention } = modules;
  const loadTokens = async (): Promise<void> => webhooks.spill?.list.load();
  return [
    {
      name: 'database',
      // Metrics are loaded at the same time, because Prometheus reads them even while Postgres is away.
      start: (stopping) => Promise.all([database.ready(loadTokens, stopping), observability.load(sources)]),
      stop: database.close,
    },
    { name: 'observability', stop: observability.close },
    // Pub/Sub's library is the largest, and the relay needs it as soon as it starts.
    ...(pubsub ? [{ name: 'Pub/Sub', start: pubsub.load, stop: pubsub.close }] : []),
    { name: 'database watch', start: database.watch.check, stop: database.watch.stop },
    webhooks.notStored,
    live.followed,
    live.relay,
    kitchens.publisher,
    ...(attention ? [attention.part] : []),
    notices.work,
    jobs(app, config, modules),
    orders.calls,
    webhooks.batches,
    webhooks.spilled,
    live.feeds,
    {
      name: 'listeners',
      stop: () => Promise.all([live.members?.streams.drain(config.DRAIN_FINISH_MS / 2), listeners.close()]),
    },
    // The load balancer must notice that the process is not ready before the listeners refuse connections.
    { name: 'load balancer', stop: () => sleep(config.DRAIN_DELAY_MS) },
    orders.claims,
    ready,
  ];
}

/** Makes the readiness of the process, and the part that sets and clears it. */
function readinessOf({ database, providers, log }: FastifyInstance): { readiness: () => Readiness; part: Part } {
  let isReady = false;
  return {
    readiness: () => ({ ready: isReady, database: database.watch.state() }),
    part: {
      name: 'readiness',
      start(stopping) {
        isReady = true;
        log.info({ integrations: [...providers.registry.keys()] }, 'ready');
        void loadForOrders(log, stopping);
      },
      stop() {
        isReady = false;
      },
    },
  };
}

/** Loads the libraries that the first order needs, one at a time, so that a request waits for at most one of them. */
async function loadForOrders(log: FastifyBaseLogger, stopping: AbortSignal): Promise<void> {
  for (const load of [loadGraphqlRequest, loadPhones, loadUndici]) {
    await sleep(LOAD_EVERY_MS, undefined, { ref: false });
    if (stopping.aborted) return;
    try {
      await load();
    } catch (error) {
      log.warn({ err: error }, 'a library could not be loaded in advance; the first order loads it');
    }
  }
}

async function drain(
  config: Pick<Config, 'DRAIN_DELAY_MS' | 'DRAIN_FINISH_MS'>,
  log: FastifyBaseLogger,
  { stop, listeners, connections }: { stop: () => Promise<void>; listeners: Listeners; connections: Connections },
): Promise<void> {
  log.info('draining');
  connections.endReuse();
  // Calls to a POS that are still running at the deadline are abandoned. Another process continues their orders.
  const late = sleep(config.DRAIN_DELAY_MS + config.DRAIN_FINISH_MS, false, { ref: false });
  const inTime = await Promise.race([stop().then(() => true), late]);
  if (!inTime) log.warn('running calls were abandoned at shutdown; another process continues them');
  listeners.cutOff();
  log.info('stopped');
}
