import type { FastifyRequest } from 'fastify';

/**
 * Whether our own page made the request, as far as the browser says: `Sec-Fetch-Site`, which no script can set, or
 * `Origin` where it is too old for that or comes by plain http. Every browser sends one of them with whatever changes
 * something; a request with neither is a program's, which has the API with a bearer token, and is refused here. What only
 * reads may come without, but not from another page: a neighbour on the same site is sent our cookie.
 *
 * @param publicOrigin PUBLIC_URL's, for a load balancer that sends us another Host than the browser's
 */
export function isSameOrigin({ method, headers }: FastifyRequest, publicOrigin: string | undefined): boolean {
  const { origin, host, 'sec-fetch-site': site } = headers;
  const reads = method === 'GET' || method === 'HEAD';
  if (site !== undefined) return site === 'same-origin' || (reads && site === 'none');
  if (origin === undefined) return reads;
  const from = URL.parse(origin);
  return from !== null && (from.host === host || from.origin === publicOrigin);
}
