import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import sensible from '@fastify/sensible';
import fastify, {
  LogController,
  type ConnectionError,
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
} from 'fastify';
import type { Connections } from './http/bound-connections.ts';
import { CONSOLE_PATHS, secureHeaders } from './http/console/secure-headers.ts';
import { FOLLOW_PATH, followDoor, type FollowDeps } from './http/follow/follow-door.ts';
import { health, type Readiness } from './http/health.ts';
import type { OperatorDeps } from './http/operator/mount-routes.ts';
import { requestIds } from './http/request-ids.ts';
import { PUSH_PATH, pubsubPush, type PushDeps } from './http/pubsub-push.ts';
import { webhookDoor, type WebhookDeps } from './http/webhook-door.ts';
import { refuse } from './http/refuse.ts';

export type AppDeps = {
  log: FastifyBaseLogger;
  /** Those in front, whose X-Forwarded-For says where a request comes from: TRUSTED_PROXIES. */
  proxies?: readonly string[];
  /** Those of all listeners. */
  connections: Connections;
  readiness: () => Readiness;
  /**
   * What the ordering platform, POS systems and members call. Undefined where operators have a listener of their own, at
   * theirs. Members have no door while nobody's tokens are known.
   */
  outside?: { push: PushDeps; webhook: WebhookDeps; follow?: FollowDeps | undefined } | undefined;
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

const OPERATOR_PATHS = /^\/(orders|webhooks|locations)\//;

/** Builds the doors of one listener. It opens nothing itself: everything behind them is given. */
export function buildApp({ log, proxies = [], connections, readiness, outside, operator }: AppDeps): FastifyInstance {
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
    // A path that cannot be decoded names no location.
    frameworkErrors: (_error, request, reply) => {
      const path = request.raw.url ?? '';
      const ofOperators = outside === undefined || OPERATOR_PATHS.test(path) || CONSOLE_PATHS.test(path);
      if (operator !== undefined && ofOperators) {
        void (reply as FastifyReply)
          .code(400)
          .headers(CONSOLE_PATHS.test(path) ? secureHeaders : {})
          .send({ error: 'the path cannot be decoded: percent-encode the id in it' });
      } else void refuse(request, reply, outside?.webhook.bodyLimit ?? 0);
    },
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
  health(app, readiness);
  if (outside !== undefined) {
    pubsubPush(app, outside.push, connections.recognise);
    webhookDoor(app, outside.webhook, connections.recognise);
    if (outside.follow !== undefined) followDoor(app, outside.follow, connections.recognise);
  }
  if (operator !== undefined) {
    void app.register(async (scope) => {
      const [{ mountRoutes }, doors, { sessionDoor }] = await Promise.all([
        import('./http/operator/mount-routes.ts'),
        import('./http/operator/bearer-door.ts'),
        import('./http/console/session-door.ts'),
      ]);
      scope.addHook('onRequest', async (_request, reply) => void reply.header('x-content-type-options', 'nosniff'));
      const mountApi = mountRoutes(scope, operator);
      await scope.register((door) => doors.bearerDoor(door, operator, connections.recognise, mountApi));
      await scope.register((door) => sessionDoor(door, operator, connections.recognise, mountApi), {
        prefix: '/console',
      });
    });
  }
  return app;
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
