import type { FastifyRequest } from 'fastify';

/**
 * Tells whether our own page made the request, by `Sec-Fetch-Site`, which no script can set. An old browser, or plain
 * http, has only `Origin`. Every browser sends one of them with a request that changes something. A request with
 * neither comes from a program and is refused: programs use the API with a bearer token. A read may have neither, but
 * must not come from another page, since a neighbour on the same site is sent our cookie.
 *
 * @param publicOrigin CONSOLE_URL's or else PUBLIC_URL's, for a load balancer that changes the Host
 */
export function isSameOrigin({ method, headers }: FastifyRequest, publicOrigin: string | undefined): boolean {
  const { origin, host, 'sec-fetch-site': site } = headers;
  const reads = method === 'GET' || method === 'HEAD';
  if (site !== undefined) return site === 'same-origin' || (reads && site === 'none');
  if (origin === undefined) return reads;
  const from = URL.parse(origin);
  return from !== null && (from.host === host || from.origin === publicOrigin);
}
