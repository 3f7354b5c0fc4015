import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Pool } from 'pg';
import { z } from 'zod';
import { recordAct } from '../../core/operators/audit.ts';
import { SESSION_S, endSession, openSession } from '../../core/operators/operator-sessions.ts';
import type { Actor } from '../../core/operators/operator.ts';
import { version } from '../../version.ts';
import type { Identify } from '../operator/identify.ts';
import { unauthorized } from '../operator/token-gate.ts';
import { isOwnMachine, sessionCookie, sessionCookies } from './session-cookie.ts';

const Login = z.object({ token: z.string({ error: 'is not a text: a token' }) });
const NOBODY: Actor = { kind: 'nobody', id: 'nobody', name: 'nobody' };

/**
 * Mounts the routes of a session.
 *
 * - `POST /session` `{"token"}`, OPERATOR_TOKEN or a named one: `204` and a cookie, `401` wrong token, `403` plain http
 * - `GET /session` `200` who it is, what they may, its end, and the service's version; `401` no session
 * - `DELETE /session` `204` the session is over, and the browser deletes the cookie
 */
export function sessionRoutes(
  scope: FastifyInstance,
  about: { pool: Pool; identify: Identify; operatorToken: string | undefined; publicOrigin: string | undefined },
): void {
  const { pool, identify, publicOrigin } = about;
  const api = scope.withTypeProvider<ZodTypeProvider>();

  api.post('/session', { schema: { body: Login } }, async (request, reply) => {
    // Only the browser knows its own scheme, since a proxy may end TLS, and names it in each POST. Plain http is
    // allowed on the machine itself, where not every browser stores a Secure cookie, and where PUBLIC_URL is http.
    const origin = URL.parse(request.headers.origin ?? '');
    const plain = origin?.protocol === 'http:';
    if (plain && !isOwnMachine(origin) && origin.origin !== publicOrigin) {
      throw scope.httpErrors.forbidden('a browser keeps no session over plain http: open the console by https');
    }
    const from = { source: request.ip, requestId: request.id };
    const operator = await identify.byToken(request.body.token);
    if (operator === undefined || operator.kind === 'nobody' || operator.kind === 'command_line') {
      await recordAct(pool, NOBODY, { did: 'sign in', ...from }, { outcome: 'refused' });
      return unauthorized(reply, 'Cookie');
    }
    const { kind, id, name } = operator;
    const cookie = await openSession(pool, {
      kind,
      id,
      name,
      source: request.ip,
      userAgent: request.headers['user-agent'],
      operatorToken: kind === 'operator_token' ? about.operatorToken : undefined,
    });
    await recordAct(pool, operator, { did: 'sign in', ...from }, { outcome: 'done' });
    const { name: cookieName, attributes } = sessionCookie(plain);
    return reply
      .setCookie(cookieName, cookie, { ...attributes, maxAge: SESSION_S })
      .code(204)
      .send();
  });

  api.get('/session', async (request, reply) => {
    const operator = await identify.bySession(sessionCookies(request, publicOrigin));
    if (operator?.session === undefined) return unauthorized(reply, 'Cookie');
    const { kind, name, rights, session } = operator;
    return { kind, name, rights, until: session.expiresAt, version };
  });

  api.delete('/session', async (request, reply) => {
    const operator = await identify.bySession(sessionCookies(request, publicOrigin));
    if (operator?.session !== undefined) await endSession(pool, operator.session.sessionId);
    for (const plain of [true, false]) {
      const { name, attributes } = sessionCookie(plain);
      reply.clearCookie(name, attributes);
    }
    return reply.code(204).send();
  });
}
