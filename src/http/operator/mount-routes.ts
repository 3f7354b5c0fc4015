import type { FastifyInstance } from 'fastify';
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';
import type { Pool } from 'pg';
import type { Now } from '../../core/postgres/database-clock.ts';
import type { BoardFeed } from '../../core/orders/board-feed.ts';
import type { AllowedHosts } from '../../core/egress/allowed-hosts.ts';
import type { OrderFeed } from '../../core/live/order-feed.ts';
import type { Credentials, Registry } from '../../core/domain/provider.ts';
import type { RetranslateDeps } from '../../core/replay/retranslate.ts';
import type { SpillState } from '../../core/spill/spill-webhook.ts';
import type { OidcSettings } from '../console/oidc-client.ts';
import type { Readiness } from '../health.ts';
import type { JudgeSlowly } from '../slow-guesses.ts';
import { mountOperations } from '../../operators/mount-operations.ts';
import { OPERATIONS } from '../../operators/registry.ts';
import { answerErrors, takeJson } from './answer-errors.ts';
import { boardRoutes } from './board-routes.ts';
import type { EventStream } from './event-stream.ts';
import type { Operator } from '../../core/operators/operator.ts';
import type { Identify } from './identify.ts';
import { liveRoutes } from './live-routes.ts';
import type { RenderMetrics } from './metrics-route.ts';

export type OperatorDeps = {
  identify: Identify;
  /** Has whoever guesses judged slowly. */
  judge: JudgeSlowly;
  /** OPERATOR_TOKEN, of which a session knows that it was opened by it. */
  operatorToken: string | undefined;
  /** CONSOLE_URL, where it is not PUBLIC_URL at which people open the console. */
  consoleUrl: string | undefined;
  /** Undefined where nobody signs in by OIDC. */
  oidc: OidcSettings | undefined;
  pool: Pool;
  /** The time by Postgres's clock. */
  now: Now;
  translating: RetranslateDeps;
  registry: Registry;
  credentialsFor: (integration: string) => Credentials;
  /** Asks POS systems. */
  posFetch: typeof fetch;
  allowedHosts: AllowedHosts;
  /** Seconds for which an unknown POS id may still become ours. */
  parkTtlS: number;
  follow: OrderFeed['follow'];
  watch: BoardFeed['watch'];
  metrics: RenderMetrics;
  readiness: () => Readiness;
  spillState: () => SpillState;
  /** Signals work to the workers of this process. */
  wake(): void;
};

/** What all doors to the API share, so that each limit counts once. */
export type Shared = {
  /** Aborts at the end of a drain, when the load balancer sends reconnecting readers to other processes. */
  closing: AbortSignal;
  now: Now;
  /** The open event streams, and who reads each. */
  streams: Map<EventStream, Operator>;
};

/**
 * The operator API, for programs and the console. The door decides who may use it.
 *
 * - `400` wrong request, `401` wrong token, `403` not with these roles, `404` it does not exist, `409` not possible now
 * - `503` Postgres is away, or no room (`Retry-After`); `500` an error of ours
 *
 * @returns a function that mounts the routes behind a door, on a scope of its own
 */
export function mountRoutes(app: FastifyInstance, deps: OperatorDeps): (scope: FastifyInstance) => void {
  const ending = new AbortController();
  const shared: Shared = { closing: ending.signal, now: deps.now, streams: new Map() };
  app.addHook('preClose', async () => {
    ending.abort();
    for (const stream of shared.streams.keys()) stream.end();
  });
  return (scope) => {
    speakJson(scope);
    mountOperations(scope, OPERATIONS, deps, shared.closing);
    liveRoutes(scope, deps, shared);
    boardRoutes(scope, deps, shared);
  };
}

/** Makes a scope speak JSON that zod validates, with errors that say what is wrong, and without caches. */
export function speakJson(scope: FastifyInstance): void {
  scope.setValidatorCompiler(validatorCompiler);
  scope.setSerializerCompiler(serializerCompiler);
  takeJson(scope);
  answerErrors(scope);
  scope.addHook('onSend', async (_request, reply) => void reply.header('cache-control', 'no-store'));
}
