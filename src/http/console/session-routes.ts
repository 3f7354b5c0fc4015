import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { isLoopback } from '../../config.ts';
import { version } from '../../version.ts';
import { audit } from '../operator/audit.ts';
import { unauthorized } from '../operator/token-gate.ts';
import { SESSION_S, type SessionTokens } from './session-tokens.ts';

export const SESSION_COOKIE = 'expediter_session';
const attributes = { path: '/console', httpOnly: true, sameSite: 'strict' } as const;

const Login = z.object({ token: z.string({ error: 'is not a text: the operator token' }) });

/**
 * Mounts the routes of a session.
 *
 * - `POST /session` `{"token": OPERATOR_TOKEN}`: `204` and a cookie, `401` wrong token, `403` plain http
 * - `GET /session` `200` its end, and the service's version; `401` no session
 * - `DELETE /session` `204` the browser deletes the cookie
 */
export function sessionRoutes(
  scope: FastifyInstance,
  about: { isOurs: (token: string) => boolean; tokens: SessionTokens; publicOrigin: string | undefined },
): void {
  const { isOurs, tokens, publicOrigin } = about;
  const api = scope.withTypeProvider<ZodTypeProvider>();

  api.post('/session', { schema: { body: Login } }, async (request, reply) => {
    // Only the browser knows its own scheme, since a proxy may end TLS, and names it in each POST. Plain http is
    // allowed on the machine itself, where not every browser stores a Secure cookie, and where PUBLIC_URL is http.
    const origin = URL.parse(request.headers.origin ?? '');
    const plain = origin?.protocol === 'http:';
    if (plain && !isLoopback(origin.hostname.replaceAll(/[[\]]/g, '')) && origin.origin !== publicOrigin) {
      throw scope.httpErrors.forbidden('a browser keeps no session over plain http: open the console by https');
    }
    if (!isOurs(request.body.token)) {
      audit(request, 'refuse login', {});
      return unauthorized(reply, 'Cookie');
    }
    const token = await tokens.issue();
    audit(request, 'log in', {});
    return reply
      .setCookie(SESSION_COOKIE, token, { ...attributes, secure: !plain, maxAge: SESSION_S })
      .code(204)
      .send();
  });

  api.get('/session', async (request, reply) => {
    const until = await tokens.read(request.cookies[SESSION_COOKIE]);
    return until === undefined ? unauthorized(reply, 'Cookie') : { until, version };
  });

  api.delete('/session', async (_request, reply) => reply.clearCookie(SESSION_COOKIE, attributes).code(204).send());
}
