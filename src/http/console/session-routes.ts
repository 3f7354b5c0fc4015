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
 * - `POST /session` `{"token": OPERATOR_TOKEN}`: `204` and a cookie, `401` it is another, `403` it came over plain http
 * - `GET /session` `200` until when, and the service's version; `401` there is none
 * - `DELETE /session` `204` the browser forgets it
 */
export function sessionRoutes(
  scope: FastifyInstance,
  about: { isOurs: (token: string) => boolean; tokens: SessionTokens; publicOrigin: string | undefined },
): void {
  const { isOurs, tokens, publicOrigin } = about;
  const api = scope.withTypeProvider<ZodTypeProvider>();

  api.post('/session', { schema: { body: Login } }, async (request, reply) => {
    // Only the browser knows by what it came, and says so with each POST: what stands between may have ended TLS. It may
    // be plain on the machine itself, where not every browser keeps a Secure cookie, or where PUBLIC_URL says so.
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
