import type { FastifyInstance, RouteOptions } from 'fastify';
import { z } from 'zod';
import { failures, json } from './answers.ts';
import type { ApiDocument } from './docs-page.ts';

const tags = ['Process'];
const security = [{ operatorToken: [] }, { browser: [] }];

/** Mounts `GET /openapi.json` and, for people, `GET /docs`. @param routes of operators, these two included */
export function docsRoutes(scope: FastifyInstance, routes: readonly RouteOptions[]): void {
  let describing: Promise<ApiDocument> | undefined;
  const describe = (): Promise<ApiDocument> =>
    (describing ??= import('./describe-api.ts').then(({ describeApi }) => describeApi(routes)));

  scope.get(
    '/openapi.json',
    {
      schema: {
        operationId: 'openapi',
        tags,
        summary: 'This description, as OpenAPI 3.1',
        security,
        response: { 200: json('An OpenAPI document.', z.looseObject({ openapi: z.string() })), ...failures() },
      },
    },
    async (_request, reply) => reply.type('application/json').send(JSON.stringify(await describe())),
  );
  scope.get(
    '/docs',
    {
      schema: {
        operationId: 'docs',
        tags,
        summary: 'This description, for people',
        security,
        response: { 200: { description: 'A page.', content: { 'text/html': { schema: z.string() } } }, ...failures() },
      },
    },
    async (_request, reply) => {
      const { docsPage } = await import('./docs-page.ts');
      const { html, contentSecurityPolicy } = docsPage(await describe());
      return reply
        .headers({ 'content-security-policy': contentSecurityPolicy, 'referrer-policy': 'no-referrer' })
        .type('text/html; charset=utf-8')
        .send(html);
    },
  );
}
