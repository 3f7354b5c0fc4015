import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import sensible from '@fastify/sensible';
import fastify, {
  LogController,
  type ConnectionError,
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import type { Config } from '../config/config.ts';
import type { AvailabilityDeps } from '../http/availability-routes.ts';
import type { Connections, Authenticate } from '../http/bound-connections.ts';
import type { AnswerDeps } from '../http/answer-routes.ts';
import { CONSOLE_PATHS, secureHeaders } from '../http/console/page-files.ts';
import { FOLLOW_PATH, followRoutes, type FollowDeps } from '../http/follow/follow-routes.ts';
import { health, type Readiness } from '../http/health.ts';
import { pubsubPush, type PushDeps } from '../http/pubsub-push.ts';
import { PUSH_PATH } from '../core/domain/paths.ts';
import { bodyBudget } from '../http/read-body.ts';
import { refuse } from '../http/refuse.ts';
import { requestIds } from '../http/request.ts';
import { signalRoutes, type SignalDeps } from '../http/signal-routes.ts';
import { webhookRoutes, type WebhookDeps } from '../http/webhook-routes.ts';
import type { OperatorDeps } from '../http/operator/operator-deps.ts';
import { sendProblem } from '../http/problem.ts';
import { operatorEndpoint } from './operators.ts';

export type ListenerOptions = {
  log: FastifyBaseLogger;
  /** TRUSTED_PROXIES. The X-Forwarded-For of these proxies names the source of a request. */
  proxies?: readonly string[] | undefined;
  connections: Connections;
  /** Called if a request was forwarded by a proxy that is not trusted. */
  onForwarded?: (() => void) | undefined;
  forOperators: boolean;
  /** WEBHOOK_BODY_LIMIT. Undefined if the listener serves only operators. */
  bodyLimit: number | undefined;
};

export type Endpoints = {
  readiness: () => Readiness;
  /**
   * The endpoints of the ordering platform (with `availability`), POS systems, members and contacts of restaurants.
   * Undefined for a listener that serves only operators. Members have no endpoint if no keys of their tokens are configured.
   */
  outside?:
    | {
        /** Undefined if Pub/Sub does not push. */
        push: Omit<PushDeps, 'authenticate'> | undefined;
        signal: Omit<SignalDeps, 'authenticate' | 'budget'>;
        /** With the bytes of all bodies in memory. */
        webhook: Omit<WebhookDeps, 'authenticate' | 'budget'> & { bodyBudget: number };
        follow?: Omit<FollowDeps, 'authenticate'> | undefined;
        availability?: Omit<AvailabilityDeps, 'authenticate'> | undefined;
        answers?: AnswerDeps | undefined;
      }
    | undefined;
  /** Undefined if another listener serves operators, or if there are none. */
  operator?: OperatorDeps | undefined;
};

/** Maximum characters of a path parameter. It equals Node's limit for a head, so only Node refuses long paths. */
const MAX_PARAM_LENGTH = 16_384;
/** A request that takes longer to arrive completely is cut off. */
const REQUEST_TIMEOUT_MS = 15_000;
/** When the server closes, connections without a request stay open for this long. */
const UNUSED_MS = 500;
/**
 * Connections that may wait while the process is busy, at most net.core.somaxconn. Above Node's 511, Linux would not end
 * their handshakes, and their senders would see time-outs and resets. https://man7.org/linux/man-pages/man2/listen.2.html
 */
const BACKLOG = 4_096;
/** Idle time-out of a connection. Load balancers (Google's: 600 s) must close first, or their requests may fail. */
const KEEP_ALIVE_MS = 620_000;

/** Replaces Fastify's default schema compilers, which load 150 files. Routes with a schema set zod's compilers. */
const noCompiler = (): never => {
  throw new Error('a route with a schema must set its own compiler');
};

const OPERATOR_PATHS = /^\/v1\//;
/**
 * Removes the slashes that a person typed too many into the address of a signal or a webhook. A 404 would mean that nobody
 * hears of the order.
 */
function tidied(url: string): string {
  const path = /^\/+(?:pubsub|signal|webhook)(?![^/?])[^?]*/;
  return url.replace(path, (found) => found.replaceAll(/\/{2,}/g, '/').replace(/\/$/, ''));
}

/** Builds the Fastify instance of one listener, without endpoints. */
export function createListener(options: ListenerOptions): FastifyInstance {
  const { log, proxies = [], connections, onForwarded } = options;
  const app = fastify({
    loggerInstance: log,
    genReqId: requestIds(),
    trustProxy: proxies.length > 0 && [...proxies],
    // A busy machine may take longer than Fastify's ten seconds to load the modules of a plugin.
    pluginTimeout: 0,
    // Each endpoint logs its own line at the end of a request.
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Both time-outs are equal, because Node applies the larger one to a body. By default Node checks only every 30 s.
    http: { headersTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: 1_000, requireHostHeader: false },
    clientErrorHandler: (error, socket) => answerUnreadable(error, socket, connections.responseOn(socket)),
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Requests on open connections are served while closing.
    return503OnClosing: false,
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    rewriteUrl: ({ url = '/' }) => tidied(url),
    frameworkErrors: (_error, request, reply) =>
      answerUndecodable(options, request as FastifyRequest, reply as FastifyReply),
  });
  connections.watch(app.server);
  app.addHook('preClose', async () => {
    connections.endReuse();
    // Unused connections stay open briefly: a load balancer opens them in advance, and may have just sent a request.
    setTimeout(() => {
      for (const socket of connections.unusedOf(app.server)) socket.destroy();
    }, UNUSED_MS);
  });
  if (proxies.length === 0) {
    app.addHook('onRequest', ({ headers }, _reply, done) => {
      if (headers['x-forwarded-for'] !== undefined) onForwarded?.();
      done();
    });
  }
  // A request with an unknown Expect header gets its normal answer, not a 417.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  void app.register(sensible);
  // Fastify's default handler would write the URL, which may contain a token, to the log and to the answer.
  app.setNotFoundHandler((_request, reply) => reply.notFound());
  return app;
}

/** Adds the endpoints. Each is a Fastify plugin with its own parsers, hooks and error handler. */
export function addEndpoints(
  app: FastifyInstance,
  { readiness, outside, operator }: Endpoints,
  authenticate: Authenticate,
): void {
  void app.register(health, { readiness });
  if (outside !== undefined) {
    const { push, follow, availability, answers } = outside;
    if (push !== undefined) void app.register(pubsubPush, { ...push, authenticate });
    const budget = bodyBudget(outside.webhook.bodyBudget);
    void app.register(signalRoutes, { ...outside.signal, authenticate, budget });
    void app.register(webhookRoutes, { ...outside.webhook, authenticate, budget });
    if (answers !== undefined) {
      void app.register(async (scope) => {
        const { answerRoutes } = await import('../http/answer-routes.ts');
        await answerRoutes(scope, answers);
      });
    }
    if (follow !== undefined) void app.register(followRoutes, { ...follow, authenticate });
    if (availability !== undefined) {
      void app.register(async (scope) => {
        const { availabilityRoutes } = await import('../http/availability-routes.ts');
        await availabilityRoutes(scope, { ...availability, authenticate });
      });
    }
  }
  if (operator !== undefined) {
    void app.register(operatorEndpoint, { operator, authenticate });
    // A person who opens the address of the service wants the console. A program gets the answer of any unknown path.
    app.get('/', ({ headers }, reply) =>
      headers.accept?.includes('text/html') ? reply.redirect('/console/') : reply.callNotFound(),
    );
  }
}

/** Builds a listener with its endpoints. All dependencies are passed in, so building connects to nothing. */
export function buildListener(about: Omit<ListenerOptions, 'forOperators' | 'bodyLimit'> & Endpoints): FastifyInstance {
  const { log, proxies, connections, onForwarded, ...endpoints } = about;
  const forOperators = endpoints.operator !== undefined;
  const bodyLimit = endpoints.outside?.webhook.bodyLimit;
  const app = createListener({ log, proxies, connections, onForwarded, forOperators, bodyLimit });
  addEndpoints(app, endpoints, connections.authenticate);
  return app;
}

function answerUndecodable(
  { forOperators, bodyLimit }: ListenerOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const path = request.raw.url ?? '';
  const ofOperators = bodyLimit === undefined || OPERATOR_PATHS.test(path) || CONSOLE_PATHS.test(path);
  if (!forOperators || !ofOperators) void refuse(request, reply, bodyLimit ?? 0);
  else {
    reply.headers(CONSOLE_PATHS.test(path) ? secureHeaders : {});
    void sendProblem(reply, 400, 'The path cannot be decoded. Percent-encode the id in it.');
  }
}

/**
 * Answers a malformed or incomplete request with a status that its endpoint allows. A head over Node's limit of 16 kB
 * cannot have a valid token, and gets 401. Any other request may have been damaged in transit, so the answer asks the
 * sender to repeat it. Fastify's default handler would log the bytes of the request, including the token.
 * @param response set if the request's head was read, and only the rest is malformed
 */
function answerUnreadable(error: ConnectionError, socket: Socket, response: ServerResponse | undefined): void {
  const isTooLong = error.code === 'HPE_HEADER_OVERFLOW' && response === undefined;
  const again = response?.req.url?.startsWith(PUSH_PATH) ? '503 Service Unavailable' : '500 Internal Server Error';
  const status = isTooLong ? '401 Unauthorized' : `${again}\r\nRetry-After: 1`;
  // A member's stream writes its head itself, so nothing is written into it here.
  const hasAnswer = response?.headersSent === true || response?.req.url?.startsWith(FOLLOW_PATH) === true;
  if (socket.writable && !hasAnswer) {
    socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  }
  socket.destroySoon();
}

export type Listeners = {
  listen(): Promise<void>;
  /** Stops listening. Resolves when the running requests are answered. */
  close(): Promise<void>;
  cutOff(): void;
};

/** All endpoints listen at PORT. If OPERATOR_PORT differs, the endpoints of operators listen only there. */
export function listenersOf(
  config: Pick<Config, 'HOST' | 'PORT' | 'OPERATOR_PORT'>,
  [app, operatorApp]: [app: FastifyInstance, operatorApp: FastifyInstance],
): Listeners {
  const { HOST: host, PORT: port, OPERATOR_PORT } = config;
  const apps = [...new Set([app, operatorApp])];
  const listenTextResolver = (address: string): string => `Operators are served at ${address}`;
  return {
    async listen() {
      const where = { host, backlog: BACKLOG };
      const opening = [app.listen({ ...where, port })];
      if (operatorApp !== app) {
        opening.push(operatorApp.listen({ ...where, port: OPERATOR_PORT ?? port, listenTextResolver }));
      }
      await Promise.all(opening);
    },
    async close() {
      await Promise.all(apps.map((each) => each.close()));
    },
    cutOff() {
      for (const each of apps) each.server.closeAllConnections();
    },
  };
}
