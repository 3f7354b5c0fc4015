import type { CookieSerializeOptions } from '@fastify/cookie';
import type { FastifyRequest } from 'fastify';
import { isLoopback } from '../../server/config.ts';

/** With its prefix a browser takes it from this host alone, over https, so no neighbour of the domain can set another. */
const NAME = 'expediter_session';
const SECURE_NAME = `__Host-${NAME}`;

/** @param plain over plain http, where not every browser stores a Secure cookie */
export function sessionCookie(plain: boolean): { name: string; attributes: CookieSerializeOptions } {
  const name = plain ? NAME : SECURE_NAME;
  return { name, attributes: { path: '/', httpOnly: true, sameSite: 'strict', secure: !plain } };
}

/** Of more, somebody tries many sessions with one request. */
const MOST = 4;
const VALUE = /^[\w-]{43}$/;

/**
 * The values that may be a session's. There may be two: a neighbour of the domain may have set one without the prefix.
 * Without it they are taken only where a browser may have come over plain http.
 *
 * @param publicOrigin where people open the console
 */
export function sessionCookies({ headers }: FastifyRequest, publicOrigin: string | undefined): string[] {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim().split('='));
  const under = (name: string): string[] => pairs.flatMap(([key, value = '']) => (key === name ? value : []));
  const mayBePlain = publicOrigin?.startsWith('http:') === true || isOwnMachine(URL.parse(`http://${headers.host}`));
  const all = mayBePlain ? [...under(SECURE_NAME), ...under(NAME)] : under(SECURE_NAME);
  return all.filter((value) => VALUE.test(value)).slice(0, MOST);
}

/** Whether a browser is on the machine that it asks, or on one that forwards a port. */
export function isOwnMachine(at: URL | null): boolean {
  return at !== null && isLoopback(at.hostname.replaceAll(/[[\]]/g, ''));
}
