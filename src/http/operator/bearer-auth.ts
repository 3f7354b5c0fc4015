import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { API_PATH } from '../../operators/registry.ts';
import { bearerOf } from '../request.ts';
import type { Authenticate } from '../bound-connections.ts';
import type { JudgeSlowly } from '../throttle-failures.ts';
import type { Identify } from './identify.ts';
import { guardRoutes } from './guard-routes.ts';
import { metricsRoute } from './metrics-route.ts';
import { speakJson } from './mount-routes.ts';
import type { OperatorDeps } from './operator-deps.ts';
import { openapiRoute } from './openapi-route.ts';
import { sendProblem } from '../problem.ts';

/** Refuses a request without a valid operator token before its body is read. The 401 does not say what is wrong. */
export function bearerGate(
  { identify, judge }: { identify: Identify; judge: JudgeSlowly },
  authenticate: Authenticate,
): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown> {
  return async (request, reply) => {
    const token = bearerOf(request.headers);
    request.identifyAgain = () => identify.byToken(token);
    request.operator = await judge(request, 'bearer', token === undefined ? [] : [token], request.identifyAgain);
    if (request.operator === undefined) return unauthorized(reply, 'Bearer');
    authenticate(reply.raw, request.operator.id);
    return undefined;
  };
}

const WRONG = {
  Bearer: 'The operator token is missing or not valid.',
  Cookie: 'You are not signed in, or the token is not valid. Sign in again.',
};

/** Answers 401 and closes the connection, because the body may still be arriving and will not be read. */
export function unauthorized(reply: FastifyReply, scheme: 'Bearer' | 'Cookie'): FastifyReply {
  reply.headers({
    'www-authenticate': `${scheme} realm="expediter"`,
    connection: 'close',
    'cache-control': 'no-store',
  });
  return sendProblem(reply, 401, WRONG[scheme]);
}

/** Mounts the operator API for programs. Every route needs a token as `Authorization: Bearer`. */
export async function bearerAuth(
  scope: FastifyInstance,
  deps: OperatorDeps,
  authenticate: Authenticate,
  mountApi: (scope: FastifyInstance) => void,
): Promise<void> {
  const routes: RouteOptions[] = [];
  scope.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD') routes.push(route);
  });
  scope.addHook('onRequest', bearerGate(deps, authenticate));
  guardRoutes(scope, deps);
  speakJson(scope);
  await scope.register(async (api) => mountApi(api), { prefix: API_PATH });
  metricsRoute(scope, deps.metrics);
  openapiRoute(scope, routes);
}
