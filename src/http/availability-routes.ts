import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import type { Observe } from '../core/domain/observed.ts';
import { readAvailability } from '../core/kitchens/settle-kitchens.ts';
import { digest } from '../core/operators/find-operator.ts';
import type { Authenticate } from './bound-connections.ts';
import { sendProblem } from './problem.ts';
import { bearerOf, sourceOf } from './request.ts';

export type AvailabilityDeps = {
  pool: Pool;
  /** AVAILABILITY_TOKEN */
  token: string;
  observe: Observe;
  authenticate: Authenticate;
};

export const AVAILABILITY_PATH = '/availability';
/** Maximum number of locations of one request. */
const MOST = 100;

/**
 * The endpoint where the ordering platform reads which kitchens take orders: `GET /availability?locations=club-1,club-2`.
 *
 * - `200` `{kitchens}` with an ETag. Unknown locations are left out
 * - `304` nothing has changed since the ETag in `If-None-Match`
 * - `400` `locations` is missing, or names more than a hundred
 * - `401` the token is missing or wrong; `503` Postgres is away
 */
export async function availabilityRoutes(scope: FastifyInstance, deps: AvailabilityDeps): Promise<void> {
  const ours = digest(deps.token);

  scope.setErrorHandler(async (error, request, reply) => {
    request.log.warn({ err: error }, 'availability could not be read');
    return sendProblem(reply.header('retry-after', '2'), 503, 'The availability cannot be read now. Try again later.');
  });

  scope.addHook('onRequest', async (request, reply) => {
    reply.headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
    const token = bearerOf(request.headers);
    // Not throttled: nobody guesses the token, and wrong ones of others must not keep the platform out.
    if (timingSafeEqual(digest(token ?? ''), ours)) return deps.authenticate(reply.raw, 'availability');
    if (token !== undefined) {
      const about = { endpoint: 'availability', outcome: 'refused', source: sourceOf(request) } as const;
      deps.observe({ what: 'failed authentication', ...about });
    }
    reply.headers({ 'www-authenticate': 'Bearer realm="expediter"', connection: 'close' });
    return sendProblem(reply, 401, 'The token is missing or not valid. Send AVAILABILITY_TOKEN as a bearer token.');
  });

  scope.get(AVAILABILITY_PATH, { exposeHeadRoute: false }, async (request, reply) => {
    const { locations: given } = request.query as { locations?: unknown };
    const locations = typeof given === 'string' ? given.split(',').filter((id) => id !== '') : [];
    if (locations.length === 0 || locations.length > MOST || locations.some((id) => id.includes('\0'))) {
      const detail = `Name 1 to ${MOST} locations, separated by commas: ${AVAILABILITY_PATH}?locations=club-1,club-2`;
      return sendProblem(reply, 400, detail);
    }
    const body = JSON.stringify({ kitchens: await readAvailability(deps.pool, locations) });
    const etag = `"${hash('sha256', body, 'base64url')}"`;
    reply.headers({ etag, 'cache-control': 'private, max-age=5' });
    const known = request.headers['if-none-match']?.split(',').map((each) => each.trim().replace(/^W\//, ''));
    if (known?.includes(etag) === true || known?.includes('*') === true) return reply.code(304).send();
    return reply.type('application/json').send(body);
  });
}
