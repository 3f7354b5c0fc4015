import type { FastifyInstance } from 'fastify';
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';
import type { Pool } from 'pg';
import type { Now } from '../../core/postgres/database-clock.ts';
import type { BoardFeed } from '../../core/orders/board-feed.ts';
import type { OrderFeed } from '../../core/live/order-feed.ts';
import type { Credentials, Registry } from '../../core/domain/provider.ts';
import type { RetranslateDeps } from '../../core/replay/retranslate.ts';
import { answerErrors } from './answer-errors.ts';
import { boardRoutes } from './board-routes.ts';
import { webhookRoutes } from './webhook-routes.ts';
import type { EventStream } from './event-stream.ts';
import { liveRoutes } from './live-routes.ts';
import { locationRoutes } from './location-routes.ts';
import type { RenderMetrics } from './metrics-route.ts';
import { orderRoutes } from './order-routes.ts';
import { takeJson } from './take-json.ts';
import { trafficRoutes } from './traffic-routes.ts';

export type OperatorDeps = {
  /** OPERATOR_TOKEN. */
  token: string;
  pool: Pool;
  /** The time by Postgres's clock. */
  now: Now;
  translating: RetranslateDeps;
  registry: Registry;
  credentialsFor: (integration: string) => Credentials;
  /** Seconds for which a POS id we do not know may still become ours. */
  parkTtlS: number;
  follow: OrderFeed['follow'];
  watch: BoardFeed['watch'];
  metrics: RenderMetrics;
  /** There is something to do for the workers of this process. */
  wake(): void;
};

/** What all doors to the API have in common, so that a limit is one limit. */
export type Shared = {
  /** Comes at the end of a drain, when the load balancer sends readers that come back to others. */
  closing: AbortSignal;
  /** The event streams that are open. */
  streams: Set<EventStream>;
};

/**
 * What operators, their programs and their console may see and do. Who may is for the door to say.
 *
 * - `400` the request is not right, `401` the token is not, `404` there is no such thing, `409` not as things are
 * - `503` Postgres is away, or no room (`Retry-After`); `500` ours to mend
 *
 * @returns puts the routes behind a door, on a scope of its own
 */
export function mountRoutes(app: FastifyInstance, deps: OperatorDeps): (scope: FastifyInstance) => void {
  const ending = new AbortController();
  const shared: Shared = { closing: ending.signal, streams: new Set() };
  app.addHook('preClose', async () => {
    ending.abort();
    for (const stream of shared.streams) stream.end();
  });
  return (scope) => {
    speakJson(scope);
    orderRoutes(scope, deps);
    liveRoutes(scope, deps, shared);
    boardRoutes(scope, deps, shared);
    webhookRoutes(scope, deps, shared.closing);
    locationRoutes(scope, deps, shared.closing);
    trafficRoutes(scope, deps);
  };
}

/** A scope's requests and answers are JSON that zod has checked, its errors say what is wrong, and no cache keeps any. */
export function speakJson(scope: FastifyInstance): void {
  scope.setValidatorCompiler(validatorCompiler);
  scope.setSerializerCompiler(serializerCompiler);
  takeJson(scope);
  answerErrors(scope);
  scope.addHook('onSend', async (_request, reply) => void reply.header('cache-control', 'no-store'));
}
