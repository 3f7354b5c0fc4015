import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { Id } from '../../core/domain/order.ts';
import { ReadTraffic, readTraffic } from '../../core/traffic/read-traffic.ts';
import { failures, json } from './answers.ts';
import { locationsWithin } from './guard-routes.ts';
import type { OperatorDeps } from './mount-routes.ts';

const HOURS = { '1': 1, '6': 6, '24': 24 } as const;

const TrafficQuery = z.strictObject({
  hours: z
    .enum(['1', '6', '24'], { error: 'is none of 1, 6, 24' })
    .default('1')
    .transform((hours) => HOURS[hours])
    .meta({ description: 'How far back.', examples: ['6'] }),
  location: Id.optional().meta({ description: 'At this location.' }),
  integration: Id.optional().meta({ description: 'Through this integration.' }),
});

/** Mounts `GET /traffic`: the last day's traffic of all processes. */
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
        response: { 200: json('Lists with one value for each step.', ReadTraffic), ...failures() },
      },
    },
    async (request) => {
      const { hours, location, integration } = request.query;
      return readTraffic(pool, { hours, locations: locationsWithin(request, location), integration });
    },
  );
}
