import type { FastifyInstance, RouteOptions } from 'fastify';
import type { Recognise } from '../bound-connections.ts';
import { guardRoutes } from './guard-routes.ts';
import { metricsRoute } from './metrics-route.ts';
import type { OperatorDeps } from './mount-routes.ts';
import { openapiRoute } from './openapi-route.ts';
import { bearerGate } from './token-gate.ts';

/**
 * Mounts the operators' door for programs. Every route takes a token as `Authorization: Bearer`.
 *
 * @param mountApi from `mountRoutes`
 */
export async function bearerDoor(
  scope: FastifyInstance,
  deps: OperatorDeps,
  recognise: Recognise,
  mountApi: (scope: FastifyInstance) => void,
): Promise<void> {
  const routes: RouteOptions[] = [];
  scope.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD') routes.push(route);
  });
  scope.addHook('onRequest', bearerGate(deps, recognise));
  guardRoutes(scope, deps);
  mountApi(scope);
  metricsRoute(scope, deps.metrics);
  openapiRoute(scope, routes);
}
