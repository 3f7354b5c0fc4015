import type { FastifyInstance } from 'fastify';
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';
import { mountOperations } from '../../operators/mount-operations.ts';
import { OPERATIONS } from '../../operators/registry.ts';
import { answerErrors, takeJson } from './answer-errors.ts';
import { boardRoutes } from './board-routes.ts';
import type { Shared } from './event-stream.ts';
import { liveRoutes } from './live-routes.ts';
import type { OperatorDeps } from './operator-deps.ts';

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
