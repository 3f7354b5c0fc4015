import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import fastifyStatic from '@fastify/static';

/**
 * Whether our own page made the request, by `Sec-Fetch-Site`, which no script can set. An old browser, or one on plain
 * http, sends only `Origin`. Every browser sends one of them with a request that changes something. A request with
 * neither comes from a program and is refused: programs use the API with a bearer token. A read may have neither, but
 * must not come from another page, since pages of a neighbouring subdomain send our cookie too.
 *
 * @param publicOrigin of CONSOLE_URL or else PUBLIC_URL, for a load balancer that changes the Host
 */
export function isSameOrigin({ method, headers }: FastifyRequest, publicOrigin: string | undefined): boolean {
  const { origin, host, 'sec-fetch-site': site } = headers;
  const reads = method === 'GET' || method === 'HEAD';
  if (site !== undefined) return site === 'same-origin' || (reads && site === 'none');
  if (origin === undefined) return reads;
  const from = URL.parse(origin);
  return from !== null && (from.host === host || from.origin === publicOrigin);
}

/** The console's paths, existing or not. */
export const CONSOLE_PATHS = /^\/console(?:[/?]|$)/;

/**
 * Headers of every response under `/console`. The page loads and calls only our own URLs, runs no inline script or
 * style, submits no form, and cannot be framed or read by other pages. The load balancer decides whether https is
 * enforced.
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
 * Serves the page and its files. Files with a hash in their name are cached for a year; all others are revalidated. The
 * page routes by path, so any path that names no file gets the page.
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

  // The redirect has a fixed path, since the request's own may include a host or be encoded.
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
    // Size and time do not tell versions apart: npm packs every file with the same time.
    const always = { cacheControl: false, etag: false, lastModified: false };
    return reply.sendFile(FILE.test(name) ? name : 'index.html', built, always);
  });
}
