import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { Id } from '../../core/domain/order.ts';
import { SCORECARDS_MAX, Scorecards, readScorecards } from '../../core/orders/read-scorecards.ts';
import { failures, json } from './answers.ts';
import { locationsWithin } from './guard-routes.ts';
import type { OperatorDeps } from './mount-routes.ts';

const ScorecardQuery = z.strictObject({
  location: Id.optional().meta({ description: 'Of this location.' }),
  integration: Id.optional().meta({ description: 'Of each location of this integration.' }),
});

/** Mounts `GET /scorecards`: what each vendor was like in the last day and week. */
export function scorecardRoutes(scope: FastifyInstance, { pool }: Pick<OperatorDeps, 'pool'>): void {
  scope.withTypeProvider<ZodTypeProvider>().get(
    '/scorecards',
    {
      schema: {
        operationId: 'readScorecards',
        tags: ['Traffic'],
        summary: 'What each vendor was like in the last day and week',
        description:
          'Of each integration; with `integration` of each of its locations, with `location` of one. Who has a role at some ' +
          'locations only gets these, one by one. By whole hours, ' +
          `to ten minutes. Those with the most missing webhooks come first, ${SCORECARDS_MAX} at most.`,
        querystring: ScorecardQuery,
        response: { 200: json('One for each integration or location.', Scorecards), ...failures() },
      },
    },
    async (request) => {
      const { location, integration } = request.query;
      return { scorecards: await readScorecards(pool, { integration, locations: locationsWithin(request, location) }) };
    },
  );
}
