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
import type { Config } from './config.ts';
import type { Connections, Authenticate } from '../http/bound-connections.ts';
import { CONSOLE_PATHS, secureHeaders } from '../http/console/page-files.ts';
import { FOLLOW_PATH, followRoutes, type FollowDeps } from '../http/follow/follow-routes.ts';
import { health, type Readiness } from '../http/health.ts';
import { PUSH_PATH, pubsubPush, type PushDeps } from '../http/pubsub-push.ts';
import { refuse } from '../http/refuse.ts';
import { requestIds } from '../http/request.ts';
import { webhookRoutes, type WebhookDeps } from '../http/webhook-routes.ts';
import type { OperatorDeps } from '../http/operator/operator-deps.ts';
import { sendProblem } from '../http/operator/problem.ts';
import { operatorEndpoint } from './operators.ts';

export type ListenerOptions = {
  log: FastifyBaseLogger;
  /** Proxies in front, whose X-Forwarded-For says where a request comes from: TRUSTED_PROXIES. */
  proxies?: readonly string[] | undefined;
  /** The connections of all listeners. */
  connections: Connections;
  /** Whether operators come here. */
  forOperators: boolean;
  /** WEBHOOK_BODY_LIMIT. Undefined where nobody but operators comes. */
  bodyLimit: number | undefined;
};

export type Endpoints = {
  readiness: () => Readiness;
  /**
   * What the ordering platform, POS systems and members call. Undefined where operators have a listener of their own, at
   * theirs. Members have no endpoint while nobody's tokens are known.
   */
  outside?:
    | {
        push: Omit<PushDeps, 'authenticate'>;
        webhook: Omit<WebhookDeps, 'authenticate'>;
        follow?: Omit<FollowDeps, 'authenticate'> | undefined;
      }
    | undefined;
  /** Undefined at the other listener, and where nobody could come through it. */
  operator?: OperatorDeps | undefined;
};

/** Characters of a route's parameter, Node's limit for a request's head: only Node refuses long paths. */
const MAX_PARAM_LENGTH = 16_384;
/** Time for a whole request. A slower one is cut off. */
const REQUEST_TIMEOUT_MS = 15_000;
/** Idle time-out of a connection. Load balancers (Google's: 600 s) must close first, or they meet a reset. */
const KEEP_ALIVE_MS = 620_000;

/** In place of Fastify's own, of which 150 files would be loaded: routes that have a schema bring zod's. */
const noCompiler = (): never => {
  throw new Error('a route with a schema needs a compiler of its own');
};

const OPERATOR_PATHS = /^\/v1\//;

/** Builds the Fastify instance of one listener, without endpoints. */
export function createListener(options: ListenerOptions): FastifyInstance {
  const { log, proxies = [], connections } = options;
  const app = fastify({
    loggerInstance: log,
    genReqId: requestIds(),
    trustProxy: proxies.length > 0 && [...proxies],
    // Each journey logs its own line at its end.
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Node applies the larger of the two time-outs to a body, and checks every 30 s by default.
    http: { headersTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: 1_000, requireHostHeader: false },
    clientErrorHandler: (error, socket) => answerUnreadable(error, socket, connections.responseOn(socket)),
    keepAliveTimeout: KEEP_ALIVE_MS,
    // While closing, requests on open connections are still served.
    return503OnClosing: false,
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    frameworkErrors: (_error, request, reply) =>
      answerUndecodable(options, request as FastifyRequest, reply as FastifyReply),
  });
  connections.watch(app.server);
  app.addHook('preClose', async () => {
    // Fastify does the same for later answers, so that no sender reuses its connection.
    for (const response of connections.responsesOf(app.server)) {
      if (!response.headersSent) response.setHeader('connection', 'close');
    }
  });
  // A sender with an unknown Expect header gets the answer to its request, not a 417.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  void app.register(sensible);
  // Fastify's own handler would put the URL, and so the token, into the log and the answer.
  app.setNotFoundHandler((_request, reply) => reply.notFound());
  return app;
}

/** Adds the endpoints, each a plugin with its own parsers, hooks and error handler. */
export function addEndpoints(
  app: FastifyInstance,
  { readiness, outside, operator }: Endpoints,
  authenticate: Authenticate,
): void {
  void app.register(health, { readiness });
  if (outside !== undefined) {
    void app.register(pubsubPush, { ...outside.push, authenticate });
    void app.register(webhookRoutes, { ...outside.webhook, authenticate });
    if (outside.follow !== undefined) void app.register(followRoutes, { ...outside.follow, authenticate });
  }
  if (operator !== undefined) void app.register(operatorEndpoint, { operator, authenticate });
}

/** Builds a listener with its endpoints. It opens nothing itself: everything behind them is given. */
export function buildListener({
  log,
  proxies,
  connections,
  ...endpoints
}: Pick<ListenerOptions, 'log' | 'proxies' | 'connections'> & Endpoints): FastifyInstance {
  const { outside, operator } = endpoints;
  const app = createListener({
    log,
    proxies,
    connections,
    forOperators: operator !== undefined,
    bodyLimit: outside?.webhook.bodyLimit,
  });
  addEndpoints(app, endpoints, connections.authenticate);
  return app;
}

/** Answers a path that cannot be decoded. It names no location, and no order. */
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
 * Answers a malformed or incomplete request as the doors' contracts say. A head over Node's 16 kB has no token of ours;
 * any other may have been garbled on its way. Fastify's own handler would log the bytes, token and all.
 * @param response set if the request's head was read, and only the rest is malformed
 */
function answerUnreadable(error: ConnectionError, socket: Socket, response: ServerResponse | undefined): void {
  const isTooLong = error.code === 'HPE_HEADER_OVERFLOW' && response === undefined;
  const again = response?.req.url?.startsWith(PUSH_PATH) ? '503 Service Unavailable' : '500 Internal Server Error';
  const status = isTooLong ? '401 Unauthorized' : `${again}\r\nRetry-After: 1`;
  // A stream has written its head itself.
  const hasAnswer = response?.headersSent === true || response?.req.url?.startsWith(FOLLOW_PATH) === true;
  if (socket.writable && !hasAnswer) {
    socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  }
  socket.destroySoon();
}

export type Listeners = {
  listen(): Promise<void>;
  /** Resolves once the requests under way are answered. */
  close(): Promise<void>;
  cutOff(): void;
};

/** All endpoints listen at one port, or those of operators at OPERATOR_PORT, which then has no other. */
export function listenersOf(
  config: Pick<Config, 'HOST' | 'PORT' | 'OPERATOR_HOST' | 'OPERATOR_PORT'>,
  [app, operatorApp]: [app: FastifyInstance, operatorApp: FastifyInstance],
): Listeners {
  const { HOST: host, PORT: port, OPERATOR_HOST, OPERATOR_PORT } = config;
  const apps = [...new Set([app, operatorApp])];
  const listenTextResolver = (address: string): string => `Operators are served at ${address}`;
  return {
    async listen() {
      const opening = [app.listen({ host, port })];
      if (operatorApp !== app) {
        opening.push(
          operatorApp.listen({ host: OPERATOR_HOST ?? host, port: OPERATOR_PORT ?? port, listenTextResolver }),
        );
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
