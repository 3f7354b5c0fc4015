import type { FastifyInstance } from 'fastify';
import { serializerCompiler } from 'fastify-type-provider-zod';
import { mountOperations } from './mount-operations.ts';
import { OPERATIONS } from '../../operators/registry.ts';
import { answerErrors, takeJson, validatorCompiler } from './answer-errors.ts';
import { takeLargeInTurn } from './bound-bodies.ts';
import { boardRoutes } from './board-routes.ts';
import type { Shared } from './event-stream.ts';
import { liveRoutes } from './live-routes.ts';
import type { OperatorDeps } from './operator-deps.ts';
import { sendProblem } from '../problem.ts';

/**
 * Prepares the operator API, which is mounted twice: for programs and for the console. Every error answer is one of
 * `PROBLEMS`.
 * @returns a function that mounts the routes on a scope. The scope must authenticate requests, and may have a prefix
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
    mountOperations(scope, OPERATIONS, deps, ending.signal);
    scope.setNotFoundHandler((_request, reply) => sendProblem(reply, 404, NOTHING_HERE));
    liveRoutes(scope, deps, shared);
    boardRoutes(scope, deps, shared);
  };
}

export const NOTHING_HERE = 'Nothing has this path.';

/** Makes a scope accept and send JSON that zod validates, explain its errors, and forbid caches. */
export function speakJson(scope: FastifyInstance): void {
  scope.setValidatorCompiler(validatorCompiler);
  scope.setSerializerCompiler(serializerCompiler);
  takeJson(scope);
  takeLargeInTurn(scope);
  answerErrors(scope);
  scope.addHook('onSend', async (_request, reply) => {
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store');
  });
}
