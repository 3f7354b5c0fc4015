import sensible from '@fastify/sensible';
import fastify, { LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import { health, type Readiness } from './http/health.ts';
import { pubsubPush, type PushDeps } from './http/pubsub-push.ts';
import { webhook, type WebhookDeps } from './http/webhook.ts';
import { refuse } from './http/refuse.ts';

export type AppDeps = {
  log: FastifyBaseLogger;
  push: PushDeps;
  webhook: WebhookDeps;
  readiness: () => Readiness;
};

/** As long as a request's head may be: no path is too long for a route, only for Node. */
const MAX_PARAM_LENGTH = 16_384;
/** A head or a body that dribbles in for longer is cut off. */
const REQUEST_TIMEOUT_MS = 15_000;
/** Above the idle time-out of the usual load balancers (60 s), so that they close first and never meet a reset. */
const KEEP_ALIVE_MS = 75_000;

/** The service's doors. Opens nothing itself: everything behind them is given. */
export function buildApp(deps: AppDeps): FastifyInstance {
  const app = fastify({
    loggerInstance: deps.log,
    // One line per journey, which the doors write themselves.
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // While closing, what still arrives on open connections is served like everything before it.
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    // A path that cannot be decoded names no location.
    frameworkErrors: (_error, request, reply) => {
      void refuse(request, reply, deps.webhook.bodyLimit);
    },
  });
  void app.register(sensible);
  // Fastify's own would put the URL, and so the token, into the log and the answer.
  app.setNotFoundHandler((_request, reply) => reply.notFound());
  health(app, deps.readiness);
  pubsubPush(app, deps.push);
  webhook(app, deps.webhook);
  return app;
}
