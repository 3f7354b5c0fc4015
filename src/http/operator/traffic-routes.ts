import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { readTraffic } from '../../core/traffic/read-traffic.ts';
import { failures, json } from './answers.ts';
import type { OperatorDeps } from './mount-routes.ts';
import { Traffic, TrafficQuery } from './traffic-shapes.ts';

/** - `GET /traffic` what went through in the last day, of all processes together */
export function trafficRoutes(scope: FastifyInstance, { pool }: Pick<OperatorDeps, 'pool'>): void {
  scope.withTypeProvider<ZodTypeProvider>().get(
    '/traffic',
    {
      schema: {
        operationId: 'readTraffic',
        tags: ['Traffic'],
        summary: 'What went through in the last hours, by integration',
        description:
          'Of all processes together, to ten seconds, also before the last restart. The last step is under way.',
        querystring: TrafficQuery,
        response: { 200: json('Lists with one value for each step.', Traffic), ...failures() },
      },
    },
    async ({ query: { hours, location, integration } }) =>
      readTraffic(pool, { hours, locationId: location, integration }),
  );
}
