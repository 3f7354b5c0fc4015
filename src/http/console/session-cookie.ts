import type { CookieSerializeOptions } from '@fastify/cookie';

/** With its prefix a browser takes it from this host alone, over https, so no neighbour of the domain can set another. */
const NAME = 'expediter_session';
const SECURE_NAME = `__Host-${NAME}`;

/** @param plain over plain http, where not every browser stores a Secure cookie */
export function sessionCookie(plain: boolean): { name: string; attributes: CookieSerializeOptions } {
  const name = plain ? NAME : SECURE_NAME;
  return { name, attributes: { path: '/', httpOnly: true, sameSite: 'strict', secure: !plain } };
}

/** All values that came under the session's names. There may be two: a neighbour of the domain may have set one. */
export function sessionCookies(header: string | undefined): string[] {
  return (header ?? '').split(';').flatMap((pair) => {
    const at = pair.indexOf('=');
    const name = pair.slice(0, at).trim();
    return name === SECURE_NAME || name === NAME ? pair.slice(at + 1).trim() : [];
  });
}
