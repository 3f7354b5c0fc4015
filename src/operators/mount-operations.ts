import type { FastifyInstance, FastifyRequest, FastifySchema, RouteOptions } from 'fastify';
import { failures, json } from '../http/operator/answers.ts';
import { locationsWithin, operatorOf } from '../http/operator/guard-routes.ts';
import type { OperatorDeps } from '../http/operator/operator-deps.ts';
import { actionFrom } from '../http/request.ts';
import { perform, type Caller, type Operation, type Options } from './operation.ts';

/**
 * Mounts the routes of all operations on a scope whose requests are authenticated and guarded.
 * @param closing aborts at the end of a drain, and ends requests in progress
 */
export function mountOperations(
  scope: FastifyInstance,
  operations: readonly Operation[],
  deps: OperatorDeps,
  closing: AbortSignal,
): void {
  const { translating, registry } = deps;
  const settings = { ...translating, registry };
  const service = { ...deps, closing };
  const pos = { ...deps, decryptSettings: settings.decryptSettings };
  const config = { OPERATOR_TOKEN: deps.operatorToken };
  const callerOf = (request: FastifyRequest): Caller => ({
    ...deps,
    service,
    settings,
    pos,
    config,
    by: { ...operatorOf(request), ...actionFrom(request) },
    isOver: () => closing.aborted || request.socket.destroyed,
    within: (requested) => locationsWithin(request, requested),
    note(after) {
      if (request.action !== undefined) request.action.after = after;
    },
  });
  for (const operation of operations) {
    const { api, about } = operation;
    if (api === undefined) continue;
    scope.route({
      ...methodAndUrl(api.route),
      ...(about && { config: { about: (request) => about(callerOf(request), inputOf(operation, request)) } }),
      schema: schemaOf(operation, api),
      handler: (request) => perform(operation, callerOf(request), inputOf(operation, request)),
    });
  }
}

function methodAndUrl(route: string): Pick<RouteOptions, 'method' | 'url'> {
  const [method = '', url = ''] = route.split(' ');
  return { method, url };
}

/** Merges path, query and body, as far as the operation has a schema for them. Field names of a route are unique. */
function inputOf({ params, query, body }: Operation, request: FastifyRequest): Options {
  return {
    ...(params && (request.params as Options)),
    ...(query && (request.query as Options)),
    ...(body && (request.body as Options)),
  };
}

function schemaOf(
  { id, params, query, body }: Operation,
  { route, tag, summary, description, output, answer, refuses }: NonNullable<Operation['api']>,
): FastifySchema {
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(params && { params }),
    ...(query && { querystring: query }),
    ...(body && { body }),
    response: {
      200: json(answer, output),
      ...failures(
        ...(params === undefined ? [] : [404 as const]),
        ...(refuses === true ? [409 as const] : []),
        ...(route.startsWith('POST') ? [413 as const, 415 as const] : []),
      ),
    },
  };
}
