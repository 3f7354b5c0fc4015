import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { Id } from '../../core/domain/order.ts';
import { CheckedLocation, checkLocation } from '../../core/locations/check-location.ts';
import { ListedLocations, listSeenLocations } from '../../core/locations/list-locations.ts';
import { PausedLocation, WrongLocation, pauseLocation, resumeLocation } from '../../core/locations/locations.ts';
import { ShownLocation, showLocation } from '../../core/locations/show-location.ts';
import { RevokedToken, revokeToken } from '../../core/locations/webhook-tokens.ts';
import { failures, json } from './answers.ts';
import type { OperatorDeps } from './mount-routes.ts';
import { locationsWithin } from './guard-routes.ts';
import { noSuch } from '../../operators/operation.ts';

const tags = ['Locations'];
/** Time for all calls to its POS together: an operator waits. */
const CHECK_MS = 8_000;

const LocationParams = z.strictObject({
  locationId: Id.meta({ description: 'Its id on the ordering platform, percent-encoded.', examples: ['club-1'] }),
});
const TokenParams = LocationParams.extend({
  tokenId: z
    .uuid({ error: 'is not the id of a token, such as 0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11; never the token itself' })
    .meta({
      description: 'Its id, as the location shows it; never the token itself.',
      examples: ['0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11'],
    }),
});

/**
 * - `GET /locations` all of them, with the last hour's traffic
 * - `GET /locations/:locationId` one with its tokens
 * - `POST /locations/:locationId/check` asks its POS whether its settings are right
 * - `POST /locations/:locationId/pause`, `/resume` stops and continues its orders
 * - `POST /locations/:locationId/tokens/:tokenId/revoke` revokes a token
 *
 * @param closing ends a check that is under way: a drain has no time for a POS
 */
export function locationRoutes(scope: FastifyInstance, deps: OperatorDeps, closing: AbortSignal): void {
  const { pool, registry, now } = deps;
  const { open, publicUrl } = deps.translating;
  const api = scope.withTypeProvider<ZodTypeProvider>();
  const noSuchLocation = (): Error => scope.httpErrors.notFound(noSuch.location);

  api.get(
    '/locations',
    {
      schema: {
        operationId: 'listLocations',
        tags,
        summary: 'All your locations',
        description: 'Nothing of their settings.',
        response: { 200: json('All of them.', ListedLocations), ...failures() },
      },
    },
    async (request) => ({ locations: await listSeenLocations(pool, locationsWithin(request)) }),
  );

  api.get(
    '/locations/:locationId',
    {
      schema: {
        operationId: 'showLocation',
        tags,
        summary: 'One location with its tokens',
        description: 'Nothing of its settings, and of a token no more than its id.',
        params: LocationParams,
        response: { 200: json('The location.', ShownLocation), ...failures(404) },
      },
    },
    async ({ params: { locationId } }) => {
      const shown = await showLocation({ pool, registry, publicUrl, now }, locationId);
      if (shown === undefined) throw noSuchLocation();
      return shown;
    },
  );

  api.post(
    '/locations/:locationId/check',
    {
      schema: {
        operationId: 'checkLocation',
        tags,
        summary: "Ask a location's POS whether its settings are right",
        description: 'Changes nothing at the POS, and takes up to 8 s. Also of a paused location.',
        params: LocationParams,
        response: { 200: json('What the POS says.', CheckedLocation), ...failures(404, 413, 415) },
      },
    },
    async (request) => {
      const { locationId } = request.params;
      const stopped = Promise.withResolvers<never>();
      const stop = (): void => stopped.reject(scope.httpErrors.serviceUnavailable('stops; ask again'));
      closing.addEventListener('abort', stop);
      if (closing.aborted) stop();
      try {
        const checking = checkLocation({ ...deps, open }, locationId, CHECK_MS);
        const checked = await Promise.race([checking, stopped.promise]);
        if (request.act !== undefined) request.act.after = checked.state;
        return checked;
      } catch (error) {
        throw error instanceof WrongLocation ? noSuchLocation() : error;
      } finally {
        closing.removeEventListener('abort', stop);
      }
    },
  );

  api.post(
    '/locations/:locationId/tokens/:tokenId/revoke',
    {
      schema: {
        operationId: 'revokeToken',
        tags,
        summary: 'Shut a token out, within five seconds',
        description: 'For good; also where it was already.',
        params: TokenParams,
        response: { 200: json('It opens nothing any more.', RevokedToken), ...failures(404, 413, 415) },
      },
    },
    async (request) => {
      const { locationId, tokenId } = request.params;
      if (!(await revokeToken(pool, tokenId, locationId))) {
        throw scope.httpErrors.notFound('the location has no such token');
      }
      return { tokenId, revoked: true as const };
    },
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
        if (!(await change(pool, locationId))) throw noSuchLocation();
        deps.wake();
        return { locationId, paused };
      },
    );
  }
}
