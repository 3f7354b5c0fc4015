import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fastifyStatic from '@fastify/static';

/**
 * Whether our own page made the request. `Sec-Fetch-Site` says it, and no script can set that header. Old browsers, and
 * browsers on plain http, send only `Origin`. If a request changes something, every browser sends one of the two. A
 * change with neither comes from a program and is refused, because programs use a bearer token. A read with neither is
 * allowed. A read from another page is refused, because pages of a neighbouring subdomain send our cookie too.
 * @param publicOrigin the console's origin. We compare with it too, because a load balancer may change the Host header
 */
export function isSameOrigin({ method, headers }: FastifyRequest, publicOrigin: string | undefined): boolean {
  const { origin, host, 'sec-fetch-site': site } = headers;
  const reads = method === 'GET' || method === 'HEAD';
  if (site !== undefined) return site === 'same-origin' || (reads && site === 'none');
  if (origin === undefined) return reads;
  const from = URL.parse(origin);
  return from !== null && (from.host === host || from.origin === publicOrigin);
}

/** Matches every path of the console, even if nothing has the path. */
export const CONSOLE_PATHS = /^\/console(?:[/?]|$)/;

/**
 * Headers of every response under `/console`. They allow the page to load and call only our own URLs, without inline
 * scripts, inline styles or forms. Other pages can neither frame nor read it. To enforce https, use the load balancer.
 */
export const secureHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/** The folder that `npm run build:console` writes. The path is the same from `src` and from `dist`. */
export const BUILT = fileURLToPath(new URL('../../../dist/console', import.meta.url));
const FILE = /^[\w-]+\.\w+$/;

/**
 * Serves the page and its files. Files with a hash in their name are cached for a year. A cache must revalidate all
 * other files. The page does its own routing, so every path that names no file gets the page.
 */
export async function pageFiles(scope: FastifyInstance, built: string): Promise<void> {
  await scope.register(fastifyStatic, {
    root: `${built}/assets`,
    prefix: '/assets/',
    preCompressed: true,
    index: false,
    maxAge: '365d',
    immutable: true,
    suppressWarning: true,
  });

  // The path of the redirect is fixed, because the path of the request may include a host or be encoded.
  scope.get('', async ({ url }, reply) => reply.redirect(`/console/${/\?.*/s.exec(url)?.[0] ?? ''}`, 308));

  scope.get<{ Params: { '*': string } }>('/*', async (request, reply) => {
    reply.header('cache-control', 'no-cache');
    if (!existsSync(`${built}/index.html`)) {
      return reply
        .code(503)
        .type('text/plain; charset=utf-8')
        .send('The console was not built. Run `npm run build:console`. The operator API works without it.\n');
    }
    const name = request.params['*'];
    // No ETag or Last-Modified: two versions of a file may have the same size, and npm gives all files the same time.
    const always = { cacheControl: false, etag: false, lastModified: false };
    return reply.sendFile(FILE.test(name) ? name : 'index.html', built, always);
  });
}
