import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Pool } from 'pg';
import { audited } from '../../core/operators/audit.ts';
import { SESSION_S, openSession, type SignedIn } from '../../core/operators/operator-sessions.ts';
import type { Identify } from '../operator/identify.ts';
import { actFrom, addressOf } from '../source-of.ts';
import { sessionCookie, sessionCookies } from './session-cookie.ts';

export type GiveSessionDeps = { pool: Pool; identify: Identify; publicOrigin: string | undefined };

/** Gives a browser a session of whoever signed in there. One that it had is over, whosever it was. */
export async function giveSession(
  { pool, identify, publicOrigin }: GiveSessionDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  { who, plain }: { who: Omit<SignedIn, 'source' | 'userAgent'>; plain: boolean },
): Promise<void> {
  const replaced = await sessionsOf(identify, sessionCookies(request, publicOrigin));
  const userAgent = request.headers['user-agent'];
  const sessionId = randomUUID();
  const cookie = await audited(pool, who, { did: 'sign in', subject: sessionId, ...actFrom(request) }, () =>
    openSession(pool, { ...who, sessionId, source: addressOf(request), userAgent }, replaced),
  );
  identify.lookAnew();
  const { name, attributes } = sessionCookie(plain);
  reply.setCookie(name, cookie, { ...attributes, maxAge: SESSION_S });
}

/** The sessions that cookies are of. */
async function sessionsOf(identify: Identify, cookies: readonly string[]): Promise<string[]> {
  const found = await Promise.all(cookies.map((cookie) => identify.bySession([cookie])));
  return found.flatMap((operator) => operator?.session?.sessionId ?? []);
}
