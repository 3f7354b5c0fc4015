import type { FastifyInstance, FastifyRequest, FastifySchema, RouteOptions } from 'fastify';
import { z } from 'zod';
import { failures, json } from '../http/operator/answers.ts';
import { locationsWithin, operatorOf } from '../http/operator/guard-routes.ts';
import { has, mayPlace, scopeOf } from '../core/operators/operator.ts';
import type { OperatorDeps } from '../http/operator/operator-deps.ts';
import { actionFrom } from '../http/request.ts';
import { HEADERS, perform, type Caller, type Operation, type Options } from './operation.ts';

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
  const config = { OPERATOR_TOKEN: deps.operatorToken, CONSOLE_URL: deps.consoleUrl };
  const callerOf = (request: FastifyRequest, { takes = [] }: Operation): Caller => ({
    ...deps,
    headers: Object.fromEntries(
      takes.flatMap((name) => {
        const value = request.headers[HEADERS[name].header];
        return value === undefined ? [] : [[name, String(value)]];
      }),
    ),
    service,
    settings,
    pos,
    config,
    by: { ...operatorOf(request), ...actionFrom(request) },
    isOver: () => closing.aborted || request.socket.destroyed,
    within: (requested) => locationsWithin(request, requested),
    scope: () => scopeOf(operatorOf(request), request.routeOptions.config.access?.role ?? 'admin'),
    mayPlace(before, after) {
      const { locationId = '' } = request.params as { locationId?: string };
      return mayPlace(operatorOf(request), before && { locationId, groups: before }, after);
    },
    readsOrdersAt: (locationId) => has(operatorOf(request), 'viewer', locationId),
    note(after) {
      if (request.action !== undefined) request.action.after = after;
    },
  });
  for (const operation of operations) {
    const { api, about } = operation;
    if (api === undefined) continue;
    scope.route({
      ...methodAndUrl(api.route),
      ...(about && {
        config: { about: (request) => about(callerOf(request, operation), inputOf(operation, request)) },
      }),
      ...(api.bodyLimit !== undefined && { bodyLimit: api.bodyLimit }),
      schema: schemaOf(operation, api),
      async handler(request, reply) {
        const input = inputOf(operation, request);
        const done = await perform(operation, callerOf(request, operation), input);
        if ('created' in done && done.created === true && input['dryRun'] !== true) reply.code(201);
        if ('etag' in done && done.etag !== null) reply.header('etag', done.etag);
        return done;
      },
    });
  }
}

function methodAndUrl(route: string): Pick<RouteOptions, 'method' | 'url'> {
  const [method = '', url = ''] = route.split(' ');
  return { method, url };
}

/** Merges path, query and body, as far as the operation has a schema for them. Their field names differ. */
function inputOf({ params, query, body }: Operation, request: FastifyRequest): Options {
  return {
    ...(params && (request.params as Options)),
    ...(query && (request.query as Options)),
    ...(body && (request.body as Options)),
  };
}

function schemaOf(
  { id, params, query, body, takes = [] }: Operation,
  { route, tag, summary, description, output, answer, refuses = [], creates }: NonNullable<Operation['api']>,
): FastifySchema {
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(params && { params }),
    ...(query && { querystring: query }),
    ...(body && { body }),
    ...(takes.length > 0 && {
      headers: z.looseObject(Object.fromEntries(takes.map((field) => [HEADERS[field].header, HEADERS[field].schema]))),
    }),
    response: {
      200: json(answer, output),
      ...(creates && { 201: json('It was created.', output) }),
      ...failures(
        ...(params === undefined ? [] : [404 as const]),
        ...refuses,
        ...(route.startsWith('GET') ? [] : [413 as const, 415 as const]),
      ),
    },
  };
}
