import type { FastifyInstance, RouteOptions } from 'fastify';
import type { Recognise } from '../bound-connections.ts';
import { guardRoutes } from './guard-routes.ts';
import { metricsRoute } from './metrics-route.ts';
import { speakJson, type OperatorDeps } from './mount-routes.ts';
import { tokenGate } from './token-gate.ts';
import { docsRoutes } from './docs-routes.ts';

/**
 * Mounts the operators' door for programs. Every route takes a token as `Authorization: Bearer`; pages for a browser
 * take it as a Basic password too.
 *
 * @param mountApi from `mountRoutes`
 */
export async function bearerDoor(
  scope: FastifyInstance,
  deps: OperatorDeps,
  recognise: Recognise,
  mountApi: (scope: FastifyInstance) => void,
): Promise<void> {
  const gate = tokenGate(deps, recognise);
  const routes: RouteOptions[] = [];
  scope.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD') routes.push(route);
  });

  await scope.register(async (api) => {
    api.addHook('onRequest', gate.bearer);
    guardRoutes(api, deps);
    mountApi(api);
    metricsRoute(api, deps.metrics);
  });
  await scope.register(async (browsed) => {
    browsed.addHook('onRequest', gate.bearerOrBasic);
    guardRoutes(browsed, deps);
    speakJson(browsed);
    docsRoutes(browsed, routes);
  });
}
