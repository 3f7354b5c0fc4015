import type { FastifyInstance } from 'fastify';
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';
import type { Pool } from 'pg';
import type { Now } from '../../core/postgres/database-clock.ts';
import type { FollowBoard } from '../../core/orders/board-feed.ts';
import type { FollowOrders } from '../../core/live/order-feed.ts';
import type { Credentials, Registry } from '../../core/domain/provider.ts';
import type { TranslatingAgain } from '../../core/replay/retranslate.ts';
import { answerErrors } from './answer-errors.ts';
import { board } from './board-routes.ts';
import { deliveries } from './webhook-routes.ts';
import type { EventStream } from './event-stream.ts';
import { live } from './live-routes.ts';
import { locations } from './location-routes.ts';
import type { RenderMetrics } from './metrics-route.ts';
import { orders } from './order-routes.ts';
import { takeJson } from './take-json.ts';
import { traffic } from './traffic-routes.ts';

export type OperatorDeps = {
  /** OPERATOR_TOKEN. */
  token: string;
  pool: Pool;
  /** The time by Postgres's clock. */
  now: Now;
  translating: TranslatingAgain;
  registry: Registry;
  credentialsFor: (integration: string) => Credentials;
  /** Seconds for which a POS id we do not know may still become ours. */
  parkTtlS: number;
  follow: FollowOrders['follow'];
  watch: FollowBoard['watch'];
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
export function operatorApi(app: FastifyInstance, deps: OperatorDeps): (scope: FastifyInstance) => void {
  const ending = new AbortController();
  const shared: Shared = { closing: ending.signal, streams: new Set() };
  app.addHook('preClose', async () => {
    ending.abort();
    for (const stream of shared.streams) stream.end();
  });
  return (scope) => {
    speakJson(scope);
    orders(scope, deps);
    live(scope, deps, shared);
    board(scope, deps, shared);
    deliveries(scope, deps, shared.closing);
    locations(scope, deps, shared.closing);
    traffic(scope, deps);
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
