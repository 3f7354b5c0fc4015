import { randomUUID } from 'node:crypto';
import type { CookieSerializeOptions } from '@fastify/cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Pool } from 'pg';
import { isLoopback } from '../../core/egress/allowed-hosts.ts';
import { audited } from '../../core/operators/audit.ts';
import { startSession, SESSION_S, type SignedIn } from '../../core/operators/operator-sessions.ts';
import type { Identify } from '../operator/identify.ts';
import { actionFrom, addressOf } from '../request.ts';

/** With the prefix `__Host-`, browsers accept the cookie only from this host over https, not from another subdomain. */
const NAME = 'expediter_session';
const SECURE_NAME = `__Host-${NAME}`;

/** @param plain whether the console is opened over plain http, where some browsers store no Secure cookie */
export function sessionCookie(plain: boolean): { name: string; attributes: CookieSerializeOptions } {
  const name = plain ? NAME : SECURE_NAME;
  return { name, attributes: { path: '/', httpOnly: true, sameSite: 'strict', secure: !plain } };
}

/** At most this many cookies of a request are tried. Otherwise one request could try many sessions. */
const MOST = 4;
const VALUE = /^[\w-]{43}$/;

/**
 * Finds the cookie values that may be a session's. There may be several, because a neighbouring subdomain can set a
 * cookie without prefix. A cookie without prefix is accepted only if the browser may use plain http.
 * @param publicOrigin the origin at which people open the console
 */
export function sessionCookies({ headers }: FastifyRequest, publicOrigin: string | undefined): string[] {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim().split('='));
  const under = (name: string): string[] => pairs.flatMap(([key, value = '']) => (key === name ? value : []));
  const mayBePlain = publicOrigin?.startsWith('http:') === true || isOwnMachine(URL.parse(`http://${headers.host}`));
  const all = mayBePlain ? [...under(SECURE_NAME), ...under(NAME)] : under(SECURE_NAME);
  return all.filter((value) => VALUE.test(value)).slice(0, MOST);
}

/** Whether the browser uses a loopback address: it runs on this machine, or reaches it through a forwarded port. */
export function isOwnMachine(at: URL | null): boolean {
  return at !== null && isLoopback(at.hostname);
}

export type GiveSessionDeps = { pool: Pool; identify: Identify; publicOrigin: string | undefined };

/** Opens a session for the person who signed in. The browser's previous session ends, even that of another person. */
export async function giveSession(
  { pool, identify, publicOrigin }: GiveSessionDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  { who, plain }: { who: Omit<SignedIn, 'source' | 'userAgent'>; plain: boolean },
): Promise<void> {
  const replaced = await sessionsOf(identify, sessionCookies(request, publicOrigin));
  const userAgent = request.headers['user-agent'];
  const sessionId = randomUUID();
  const cookie = await audited(pool, who, { action: 'sign in', subject: sessionId, ...actionFrom(request) }, () =>
    startSession(pool, { ...who, sessionId, source: addressOf(request), userAgent }, replaced),
  );
  identify.invalidateCache();
  const { name, attributes } = sessionCookie(plain);
  reply.setCookie(name, cookie, { ...attributes, maxAge: SESSION_S });
}

async function sessionsOf(identify: Identify, cookies: readonly string[]): Promise<string[]> {
  const found = await Promise.all(cookies.map((cookie) => identify.bySession([cookie])));
  return found.flatMap((operator) => operator?.session?.sessionId ?? []);
}
