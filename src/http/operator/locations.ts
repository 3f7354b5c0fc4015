import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { listLocations, pauseLocation, resumeLocation } from '../../core/locations.ts';
import { failures, json } from './answers.ts';
import { audit } from './audit.ts';
import type { OperatorDeps } from './operator.ts';
import { ListedLocations, LocationParams, PausedLocation } from './shapes.ts';

const tags = ['Locations'];

/**
 * - `GET /locations` all of them
 * - `POST /locations/:locationId/pause`, `/resume` lets its orders wait, and go on
 */
export function locations(scope: FastifyInstance, deps: OperatorDeps): void {
  const { pool } = deps;
  const api = scope.withTypeProvider<ZodTypeProvider>();

  api.get(
    '/locations',
    {
      schema: {
        operationId: 'listLocations',
        tags,
        summary: 'All locations',
        description: 'Nothing of their settings.',
        response: { 200: json('All locations.', ListedLocations), ...failures() },
      },
    },
    async () => ({ locations: await listLocations(pool) }),
  );

  for (const [verb, paused, change, summary, description] of [
    [
      'pause',
      true,
      pauseLocation,
      "Let a location's orders wait",
      'Nothing is lost, and the time does not count towards their deadline. Webhooks are taken as ever.',
    ],
    ['resume', false, resumeLocation, "Let a paused location's orders go on", 'They are tried at once.'],
  ] as const) {
    api.post(
      `/locations/:locationId/${verb}`,
      {
        schema: {
          operationId: `${verb}Location`,
          tags,
          summary,
          description,
          params: LocationParams,
          response: { 200: json('It is so; also where it was already.', PausedLocation), ...failures(404, 413, 415) },
        },
      },
      async (request) => {
        const { locationId } = request.params;
        if (!(await change(pool, locationId))) throw scope.httpErrors.notFound('no location has this id');
        deps.wake();
        audit(request, verb, { locationId });
        return { locationId, paused };
      },
    );
  }
}
