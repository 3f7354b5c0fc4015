import type { FastifyInstance } from 'fastify';
import { serializerCompiler } from 'fastify-type-provider-zod';
import { mountOperations } from '../../operators/mount-operations.ts';
import { OPERATIONS } from '../../operators/registry.ts';
import { answerErrors, takeJson, validatorCompiler } from './answer-errors.ts';
import { boardRoutes } from './board-routes.ts';
import type { Shared } from './event-stream.ts';
import { liveRoutes } from './live-routes.ts';
import type { OperatorDeps } from './operator-deps.ts';
import { sendProblem } from './problem.ts';

/**
 * The operator API, for programs and the console. The door decides who may use it, and under which prefix. Every error
 * answer is one of `PROBLEMS`.
 *
 * @returns a function that mounts the routes behind a door, on a scope with a prefix of its own
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
    scope.setNotFoundHandler((_request, reply) => sendProblem(reply, 404, NOTHING_HERE));
    liveRoutes(scope, deps, shared);
    boardRoutes(scope, deps, shared);
  };
}

/** What is said of a path that no route has. */
export const NOTHING_HERE = 'Nothing has this path.';

/** Makes a scope speak JSON that zod validates, with errors that say what is wrong, and without caches. */
export function speakJson(scope: FastifyInstance): void {
  scope.setValidatorCompiler(validatorCompiler);
  scope.setSerializerCompiler(serializerCompiler);
  takeJson(scope);
  answerErrors(scope);
  scope.addHook('onSend', async (_request, reply) => void reply.header('cache-control', 'no-store'));
}
