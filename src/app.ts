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
import { CONSOLE_PATHS, secureHeaders } from './http/console/secure-headers.ts';
import { health, type Readiness } from './http/health.ts';
import type { OperatorDeps } from './http/operator/mount-routes.ts';
import { requestIds } from './http/request-ids.ts';
import { PUSH_PATH, pubsubPush, type PushDeps } from './http/pubsub-push.ts';
import { webhookDoor, type WebhookDeps } from './http/webhook-door.ts';
import { refuse } from './http/refuse.ts';

export type AppDeps = {
  log: FastifyBaseLogger;
  push: PushDeps;
  webhook: WebhookDeps;
  readiness: () => Readiness;
  /** Undefined while OPERATOR_TOKEN is unset: there is no such door then. */
  operator?: OperatorDeps | undefined;
};

/** As long as a request's head may be: no path is too long for a route, only for Node. */
const MAX_PARAM_LENGTH = 16_384;
/** A request that dribbles in for longer is cut off. */
const REQUEST_TIMEOUT_MS = 15_000;
/** Above the idle time-out of any usual load balancer, so that it closes first and never meets a reset: Google's is 600 s. */
const KEEP_ALIVE_MS = 620_000;

const OPERATOR_PATHS = /^\/(orders|webhooks|locations)\//;

/** The service's doors. Opens nothing itself: everything behind them is given. */
export function buildApp(deps: AppDeps): FastifyInstance {
  const underWay = new Map<Socket, ServerResponse>();
  const app = fastify({
    loggerInstance: deps.log,
    genReqId: requestIds(),
    // One line per journey, which is written where its end is known.
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Node takes the larger of the two time-outs for a body, and looks every 30 s unless told otherwise.
    http: { headersTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: 1_000, requireHostHeader: false },
    clientErrorHandler: (error, socket) => answerUnreadable(error, socket, underWay.get(socket)),
    keepAliveTimeout: KEEP_ALIVE_MS,
    // While closing, what still arrives on open connections is served like everything before it.
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    // A path that cannot be decoded names no location.
    frameworkErrors: (_error, request, reply) => {
      const path = request.raw.url ?? '';
      if (deps.operator !== undefined && (OPERATOR_PATHS.test(path) || CONSOLE_PATHS.test(path))) {
        void (reply as FastifyReply)
          .code(400)
          .headers(CONSOLE_PATHS.test(path) ? secureHeaders : {})
          .send({ error: 'the path cannot be decoded: percent-encode the id in it' });
      } else void refuse(request, reply, deps.webhook.bodyLimit);
    },
  });
  app.server.on('request', (request, response) => {
    underWay.set(request.socket, response);
    response.once('close', () => {
      if (underWay.get(request.socket) !== response) return;
      underWay.delete(request.socket);
      // Node closes the connections that are idle when it begins to, and would wait for those that are so later.
      if (!app.server.listening) request.socket.destroySoon();
    });
  });
  app.addHook('preClose', async () => {
    // As Fastify does with what comes from now on, so that no sender uses its connection again.
    for (const response of underWay.values()) if (!response.headersSent) response.setHeader('connection', 'close');
  });
  // A sender that expects what we do not know gets the answer to its request, not a 417.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  void app.register(sensible);
  // Fastify's own would put the URL, and so the token, into the log and the answer.
  app.setNotFoundHandler((_request, reply) => reply.notFound());
  health(app, deps.readiness);
  pubsubPush(app, deps.push);
  webhookDoor(app, deps.webhook);
  const { operator } = deps;
  if (operator !== undefined) {
    void app.register(async (scope) => {
      const [{ mountRoutes }, doors, { sessionDoor }] = await Promise.all([
        import('./http/operator/mount-routes.ts'),
        import('./http/operator/bearer-door.ts'),
        import('./http/console/session-door.ts'),
      ]);
      const mountApi = mountRoutes(scope, operator);
      await scope.register((door) => doors.bearerDoor(door, operator, mountApi));
      await scope.register((door) => sessionDoor(door, operator, mountApi), { prefix: '/console' });
    });
  }
  return app;
}

/**
 * Answers what is no HTTP, or breaks off, in the words of the doors' contracts. A head over Node's 16 kB can name no
 * token of ours; anything else may have been garbled on its way. Fastify's own would log the bytes, token and all.
 * @param response of the request whose head was read, when it is only the rest that cannot be
 */
function answerUnreadable(error: ConnectionError, socket: Socket, response: ServerResponse | undefined): void {
  const isTooLong = error.code === 'HPE_HEADER_OVERFLOW' && response === undefined;
  const again = response?.req.url?.startsWith(PUSH_PATH) ? '503 Service Unavailable' : '500 Internal Server Error';
  const status = isTooLong ? '401 Unauthorized' : `${again}\r\nRetry-After: 1`;
  if (socket.writable && response?.headersSent !== true) {
    socket.write(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  }
  socket.destroySoon();
}
