import type { FastifyInstance, RouteOptions } from 'fastify';
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';
import type { Pool } from 'pg';
import type { FollowOrders } from '../../core/follow-orders.ts';
import type { TranslatingAgain } from '../../core/translate-again.ts';
import { answerErrors } from './answer-errors.ts';
import { deliveries } from './deliveries.ts';
import { live } from './live.ts';
import { locations } from './locations.ts';
import { metrics, type RenderMetrics } from './metrics.ts';
import { operatorToken } from './operator-token.ts';
import { orders } from './orders.ts';
import { pages } from './pages.ts';
import { takeJson } from './take-json.ts';

export type OperatorDeps = {
  /** OPERATOR_TOKEN. */
  token: string;
  pool: Pool;
  translating: TranslatingAgain;
  /** Seconds for which a POS id we do not know may still become ours. */
  parkTtlS: number;
  follow: FollowOrders['follow'];
  metrics: RenderMetrics;
  /** There is something to do for the workers of this process. */
  wake(): void;
};

/**
 * What operators and their programs may see and do. Everything takes `Authorization: Bearer OPERATOR_TOKEN`; what a
 * browser opens takes it as the password of Basic too.
 *
 * - `400` the request is not right, `401` the token is not, `404` there is no such thing, `409` not as things are
 * - `503` Postgres is away, or no room (`Retry-After`); `500` ours to mend
 */
export async function operator(scope: FastifyInstance, deps: OperatorDeps): Promise<void> {
  const gate = operatorToken(deps.token);
  const closing = new AbortController();
  scope.addHook('preClose', async () => closing.abort());
  scope.setValidatorCompiler(validatorCompiler);
  scope.setSerializerCompiler(serializerCompiler);
  takeJson(scope);
  answerErrors(scope);
  scope.addHook('onSend', async (_request, reply) => void reply.header('cache-control', 'no-store'));
  const routes: RouteOptions[] = [];
  scope.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD') routes.push(route);
  });

  await scope.register(async (api) => {
    api.addHook('onRequest', gate.bearer);
    orders(api, deps);
    live(api, deps, closing.signal);
    deliveries(api, deps, closing.signal);
    locations(api, deps);
    metrics(api, deps.metrics);
  });
  await scope.register(async (browsed) => {
    browsed.addHook('onRequest', gate.bearerOrBasic);
    pages(browsed, routes);
  });
}
