import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Pool } from 'pg';
import type { Observe } from '../core/domain/observed.ts';
import { readAvailability } from '../core/locations/settle-kitchens.ts';
import { digest } from '../core/operators/find-operator.ts';
import type { Authenticate } from './bound-connections.ts';
import { sendProblem } from './problem.ts';
import { bearerOf } from './request.ts';
import { throttleFailures, TooManyFailures } from './throttle-failures.ts';

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
 * - `401` the token is missing or wrong; `429` too many wrong ones came from this source; `503` Postgres is away
 */
export async function availabilityRoutes(scope: FastifyInstance, deps: AvailabilityDeps): Promise<void> {
  const ours = digest(deps.token);
  const judge = throttleFailures({ observe: deps.observe });

  scope.setErrorHandler(async (error, request, reply) => {
    if (error instanceof TooManyFailures) {
      return sendProblem(reply.header('retry-after', error.retryAfterS), 429, error.message);
    }
    request.log.warn({ err: error }, 'availability could not be read');
    return sendProblem(reply.header('retry-after', '2'), 503, 'The availability cannot be read now. Try again later.');
  });

  scope.addHook('onRequest', async (request, reply) => {
    reply.headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
    const token = bearerOf(request.headers);
    const isRight = await judge(request, 'availability', token === undefined ? [] : [token], async () =>
      timingSafeEqual(digest(token ?? ''), ours) ? true : undefined,
    );
    if (isRight === true) return deps.authenticate(reply.raw, 'availability');
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
