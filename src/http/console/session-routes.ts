import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { audited } from '../../core/operators/audit.ts';
import { endSession, endSessionsOf, listSessions } from '../../core/operators/operator-sessions.ts';
import type { Operator } from '../../core/operators/operator.ts';
import { version } from '../../core/domain/version.ts';
import { SessionParams } from '../../operators/requests.ts';
import { unauthorized } from '../operator/bearer-auth.ts';
import type { JudgeSlowly } from '../throttle-failures.ts';
import { actionFrom } from '../request.ts';
import { giveSession, type GiveSessionDeps, isOwnMachine, sessionCookie, sessionCookies } from './session-cookie.ts';
import type { Ways } from '../../core/notices/ways.ts';

const Login = z.object({ token: z.string() });

/**
 * Mounts the routes of a browser's session, and of the operator's other sessions.
 *
 * - `POST /session` `{"token"}`, OPERATOR_TOKEN or a named token: `204` and a cookie, `401` wrong token, `403` plain
 *   http. The browser's previous session ends
 * - `GET /session` `200` the operator, their permissions, the session's end, the service's version and how it
 *   notifies restaurants; `401` no session
 * - `DELETE /session` `204` the session has ended, and the browser deletes the cookie
 * - `GET /sessions` `200` the operator's open sessions; `DELETE` `204` all of them have ended
 * - `DELETE /sessions/:sessionId` `204` it has ended; `404` the operator has no such session
 */
export function sessionRoutes(
  scope: FastifyInstance,
  about: GiveSessionDeps & { judge: JudgeSlowly; operatorToken: string | undefined; ways: Ways },
): void {
  const { pool, identify, judge, operatorToken, publicOrigin, ways } = about;
  const ofSession = (request: FastifyRequest, cookies: readonly string[]): Promise<Operator | undefined> =>
    judge(request, 'session', cookies, () => identify.bySession(cookies));
  const api = scope.withTypeProvider<ZodTypeProvider>();

  api.post('/session', { schema: { body: Login } }, async (request, reply) => {
    // A proxy may end TLS, so only the browser knows whether it uses https. The Origin of each POST shows it. Plain
    // http is allowed on this machine, or if the console's URL is http. Some browsers then store no Secure cookie.
    const origin = URL.parse(request.headers.origin ?? '');
    const plain = origin?.protocol === 'http:';
    if (plain && !isOwnMachine(origin) && origin.origin !== publicOrigin) {
      throw scope.httpErrors.forbidden('You cannot sign in over plain http. Open the console by https.');
    }
    const { token } = request.body;
    const operator = await judge(request, 'sign_in', [token], () => identify.byToken(token));
    // A session does not open another one: it would last longer than the sign-in allows.
    if (
      operator === undefined ||
      operator.session !== undefined ||
      operator.kind === 'nobody' ||
      operator.kind === 'command_line'
    ) {
      return unauthorized(reply, 'Cookie');
    }
    const { kind, id, name } = operator;
    const who = { kind, id, name, operatorToken: kind === 'operator_token' ? operatorToken : undefined };
    await giveSession(about, request, reply, { who, plain });
    return reply.code(204).send();
  });

  api.get('/session', async (request, reply) => {
    const operator = await ofSession(request, sessionCookies(request, publicOrigin));
    if (operator?.session === undefined) return unauthorized(reply, 'Cookie');
    const { kind, name, rights, session } = operator;
    const { openedAt, expiresAt: until } = session;
    const notifies = (['email', 'webhook'] as const).filter((way) => ways[way] !== undefined);
    return { kind, name, rights, openedAt, until, version, notifies };
  });

  api.delete('/session', async (request, reply) => {
    for (const cookie of sessionCookies(request, publicOrigin)) {
      const operator = await ofSession(request, [cookie]);
      const { sessionId } = operator?.session ?? {};
      if (operator === undefined || sessionId === undefined) continue;
      await audited(pool, operator, { action: 'sign out', ...actionFrom(request) }, () => endSession(pool, sessionId));
    }
    identify.invalidateCache();
    return forgetCookies(reply).code(204).send();
  });

  api.get('/sessions', async (request, reply) => {
    const operator = await ofSession(request, sessionCookies(request, publicOrigin));
    if (operator?.session === undefined) return unauthorized(reply, 'Cookie');
    const { sessionId } = operator.session;
    const own = await listSessions(pool, { whose: operator, operatorToken });
    return { sessions: own.map((each) => ({ ...each, current: each.sessionId === sessionId })) };
  });

  api.delete('/sessions', async (request, reply) => {
    const operator = await ofSession(request, sessionCookies(request, publicOrigin));
    if (operator === undefined) return unauthorized(reply, 'Cookie');
    await audited(pool, operator, { action: 'sign out everywhere', ...actionFrom(request) }, () =>
      endSessionsOf(pool, operator),
    );
    identify.invalidateCache();
    return forgetCookies(reply).code(204).send();
  });

  api.delete('/sessions/:sessionId', { schema: { params: SessionParams } }, async (request, reply) => {
    const operator = await ofSession(request, sessionCookies(request, publicOrigin));
    if (operator === undefined) return unauthorized(reply, 'Cookie');
    const { sessionId } = request.params;
    const action = { action: 'revoke session', subject: sessionId, ...actionFrom(request) };
    if (!(await audited(pool, operator, action, () => endSession(pool, sessionId, operator)))) {
      throw scope.httpErrors.notFound('You have no session with this id.');
    }
    identify.invalidateCache();
    return reply.code(204).send();
  });
}

function forgetCookies(reply: FastifyReply): FastifyReply {
  for (const plain of [true, false]) {
    const { name, attributes } = sessionCookie(plain);
    reply.clearCookie(name, attributes);
  }
  return reply;
}
