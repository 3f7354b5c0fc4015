import type { FastifyInstance, RouteOptions } from 'fastify';
import { z } from 'zod';
import { failures, json } from './answers.ts';

export function openapiRoute(scope: FastifyInstance, routes: readonly RouteOptions[]): void {
  let describing: Promise<object> | undefined;
  const describe = (): Promise<object> =>
    (describing ??= import('./describe-api.ts').then(({ describeApi }) => describeApi(routes)));

  scope.get(
    '/openapi.json',
    {
      schema: {
        operationId: 'openapi',
        summary: 'This description, as OpenAPI 3.1',
        response: { 200: json('An OpenAPI document.', z.looseObject({ openapi: z.string() })), ...failures() },
      },
    },
    async (_request, reply) => reply.type('application/json').send(JSON.stringify(await describe())),
  );
}
